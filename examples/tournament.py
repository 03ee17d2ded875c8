"""Two coders against three testers on eight questions, and what they are worth.

Run it with `python examples/tournament.py`. Put any `Player` in: recorded, from Hugging Face, behind a server, human.
"""

from codea1_env import Arena, LocalSandbox, bundled_problems
from codea1_env.evaluation.tournament import play_tournament
from codea1_env.players import FuzzTester, GoldenTester, MutantCoder, OracleCoder, RandomTester


def main() -> None:
    coders = {"oracle": OracleCoder(), "mutant": MutantCoder()}
    testers = {"golden": GoldenTester(), "random": RandomTester(), "fuzz": FuzzTester()}
    with Arena(LocalSandbox()) as arena:
        played = play_tournament(coders, testers, bundled_problems()[:8], arena, seed=0)
    for each in (*played.coders, *played.testers):
        rating = each.rating
        print(f"{each.name:<8} {rating.points:6.0f} ({rating.low:.0f} to {rating.high:.0f}), {each.won} games won")
    print(f"mutant's share against fuzz: {played.share('mutant', 'fuzz'):.2f}")


if __name__ == "__main__":
    main()
