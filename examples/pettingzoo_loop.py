"""PettingZoo: both seats take turns over the bundled problems. `python examples/pettingzoo_loop.py`

The players are scripted: a plausible wrong program, golden tests perturbed. Put your own model in either seat.
"""

import codea1_env
from codea1_env.players import CoderRequest, MutantCoder, RandomTester, TesterRequest


def main(episodes: int = 8, seed: int = 0) -> None:
    problems = {problem.problem_id: problem for problem in codea1_env.bundled_problems()}
    game = codea1_env.env()
    for episode in range(episodes):
        game.reset(seed=seed if episode == 0 else None)
        problem = problems[game.last()[4]["problem_id"]]
        [[program]] = MutantCoder().respond([CoderRequest(problem)], seed=episode)
        game.step(program.text)
        [[suite]] = RandomTester().respond([TesterRequest(problem, game.last()[0]["code"])], seed=episode)
        game.step(suite.text)
        coder, tester = game.rewards["coder_0"], game.rewards["tester_0"]
        print(f"{problem.problem_id:<28} coder {coder:.3f}  tester {tester:.3f}  book {len(game.book)}")
    game.close()


if __name__ == "__main__":
    main()
