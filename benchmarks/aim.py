"""Whether a tester of the bands family reads the program: its kills by kind of bug, with three things shown to it.

    python benchmarks/aim.py runs/bands-seed0           that run's tester/final
    python benchmarks/aim.py MODEL_DIRECTORY --problems 60

On mutants of held-out problems, the same ones three times: the tester is shown the mutant; the reference instead,
which has the same question and no bug; or no program at all. A tester that reads kills more with the mutant in view,
above all `spur`, which only the program names. Shares are of its K tests, by their inputs, whatever value was stated;
beside them the valid ones. Standard errors are over problems. Does not say how a tester came to be so.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("train"):
    import numpy as np

    from codea1_env.arena.arena import Arena
    from codea1_env.configuration.presets import Preset, load_preset
    from codea1_env.errors import Codea1Error, ConfigurationError
    from codea1_env.players.player import TesterRequest
    from codea1_env.problems.families.bands import BUG_KINDS, BugKind, band_problems, bug_kind
    from codea1_env.problems.problem import Problem
    from codea1_env.sandbox import open_sandbox
    from codea1_env.training.models.sampling import Sampler, load_model
    from codea1_env.training.process import prepare_process
    from codea1_env.training.run.held_out import TesterResult, evaluate_tester
    from codea1_env.training.samples import SamplerSettings

VIEWS = ("the mutant", "the reference", "no program")


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tester", type=Path, help="a run's directory, or a model's in Hugging Face format")
    parser.add_argument("--problems", type=int, default=150, help="held-out problems, 1 to 10000. Default: 150")
    parser.add_argument("--samples", type=int, default=4, help="suites a mutant, 1 to 256. Default: 4")
    given = parser.parse_args()
    try:
        return _measure(given.tester, given.problems, given.samples)
    except Codea1Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _measure(tester: Path, count: int, samples: int) -> int:
    if not 1 <= count <= 10_000 or not 1 <= samples <= 256:
        raise ConfigurationError(
            f"--problems must be in [1, 10000] and --samples in [1, 256], got {count} and {samples}"
        )
    found = next((each for each in (tester / "tester/final", tester) if (each / "config.json").is_file()), None)
    if found is None:
        raise ConfigurationError(f"the tester must be a run's directory or a model's with config.json, got {tester}")
    prepare_process()
    preset = load_preset("bands")
    problems = band_problems("held_out", count, preset.problems.held_out_seed)
    print(
        "| shown | " + " | ".join(f"{kind}: kills, valid" for kind in BUG_KINDS) + " |", "|---|---|---|---|", sep="\n"
    )
    with open_sandbox() as sandbox:
        arena = Arena(sandbox, preset.reward)
        for view in VIEWS:
            sampler = _sampler(found, preset, view)
            cells = [_as_cell(_kills(arena, problems, sampler, view, kind, samples)) for kind in BUG_KINDS]
            print(f"| {view} | {' | '.join(cells)} |", flush=True)
    return 0


def _sampler(tester: Path, preset: Preset, view: str) -> Sampler:
    access = "black-box" if view == "no program" else "white-box"
    shown = dataclasses.replace(preset, options=dataclasses.replace(preset.options, access=access))
    how = SamplerSettings(preset.grpo.tokens("tester"), preset.evaluation.temperature, seed=0)
    return load_model(tester, shown).sampler(how)


def _kills(
    arena: Arena, problems: Sequence[Problem], sampler: Sampler, view: str, kind: BugKind, samples: int
) -> TesterResult:
    """The tester's suites against the mutants of one kind, whatever it was shown."""

    def sample(requests: Sequence[TesterRequest], count: int) -> list[list[str]]:
        if view == "the reference":
            requests = [dataclasses.replace(r, program=r.problem.reference_solution or "") for r in requests]
        return sampler.tester(requests, count)

    chosen = [
        dataclasses.replace(problem, mutants=tuple(mutant for mutant in problem.mutants if _is(kind, problem, mutant)))
        for problem in problems
    ]
    return evaluate_tester(arena, chosen, sample, samples, mutants=1)


def _is(kind: BugKind, problem: Problem, mutant: str) -> bool:
    return bug_kind(problem.reference_solution or "", mutant) == kind


def _as_cell(result: TesterResult) -> str:
    if not result.input_kills:
        return "no mutant"
    error = float(np.std(result.input_kills)) / len(result.input_kills) ** 0.5
    return f"{np.mean(result.input_kills):.3f} (± {error:.3f}), {np.mean(result.valid):.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
