"""What scoring while sampling gains: a round whose groups are judged as they are sampled, beside one batch at its end.

    python benchmarks/overlap.py
    python benchmarks/overlap.py --rounds 9 --questions 16 --workers 2

The sampler is the tiny base of the track bands, in a thread of its own: for each question N programs, then M
suites against each. One side keeps all answers and plays them in one pass; the other gives each question to an
AsyncArena as soon as it is sampled. Both sides sample the same answers, alternate, and must come to the same scores.
Prints seconds by the clock, medians over rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable, Sequence

from codea1_env.extras import for_script

with for_script("train"):
    from codea1_env import Arena, AsyncArena, Match, MatchScore
    from codea1_env.bench.track import track_of
    from codea1_env.language_models.directories import default_cache
    from codea1_env.players.player import CoderRequest, TesterRequest
    from codea1_env.problems import Problem
    from codea1_env.sandbox import open_sandbox
    from codea1_env.training.models.base import base_model
    from codea1_env.training.models.sampling import Sampler, as_trained, load_model
    from codea1_env.training.process import prepare_process

Sample = Callable[[Problem], Match]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each side (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=8, help="of a round (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes that judge, of each side (default: 1)")
    options = parser.parse_args()
    track = track_of("tiny", "bands")
    preset = track.preset()
    prepare_process(preset.threads)
    base = load_model(base_model(preset, default_cache(dict(os.environ))), preset)
    programs, suites = preset.round.programs, preset.round.suites
    coder, tester = (base.sampler(as_trained(preset, seat, 0)) for seat in ("coder", "tester"))
    problems = track.sets[0].draw(0)[: options.questions]

    def sample(problem: Problem) -> Match:
        return sampled(problem, coder, tester, programs, suites)

    spent: dict[str, list[float]] = {"one batch": [], "as they come": [], "sampling alone": []}
    with open_sandbox(workers=options.workers) as sandbox, Arena(sandbox, preset.reward) as arena:
        for index in range(options.rounds + 1):
            started = time.perf_counter()
            matches = [sample(problem) for problem in problems]
            between = time.perf_counter()
            together = arena.play(matches, update_book=False)
            ended = time.perf_counter()
            seconds, apart = asyncio.run(as_they_come(problems, sample, preset.reward, options.workers))
            if [rewards(each) for each in apart] != [rewards(each) for each in together]:
                raise SystemExit("both sides must come to the same scores, got others")
            if index:  # the first one warms up
                for name, value in zip(spent, (ended - started, seconds, between - started), strict=True):
                    spent[name].append(value)
    medians = {name: statistics.median(values) for name, values in spent.items()}
    for name, value in medians.items():
        print(f"{name}: {value:.2f} s a round")
    ratios = [one / other for one, other in zip(spent["one batch"], spent["as they come"], strict=True)]
    print(f"gain: {statistics.median(ratios):.2f} times, {min(ratios):.2f} to {max(ratios):.2f}")


def sampled(problem: Problem, coder: Sampler, tester: Sampler, programs: int, suites: int) -> Match:
    """N programs of a question, and M suites against each."""
    codes = coder.coder([CoderRequest(problem)], programs)[0]
    rows = tester.tester([TesterRequest(problem, code) for code in codes], suites)
    return Match(problem, tuple(codes), tuple(map(tuple, rows)))


async def as_they_come(
    problems: Sequence[Problem], sample: Sample, reward: object, workers: int
) -> tuple[float, list[MatchScore]]:
    """Seconds and scores of a round whose questions are judged while the next one is sampled."""
    async with AsyncArena(reward, workers=workers) as arena:  # type: ignore[arg-type]
        started = time.perf_counter()
        scores = []
        for problem in problems:
            match = await asyncio.to_thread(sample, problem)
            scores.append(asyncio.create_task(arena.score(match)))
        found = list(await asyncio.gather(*scores))
        return time.perf_counter() - started, found


def rewards(score: MatchScore) -> object:
    return [code.reward for code in score.codes], [[suite.reward for suite in row] for row in score.suites]


if __name__ == "__main__":
    main()
