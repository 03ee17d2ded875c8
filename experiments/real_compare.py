"""Base and arms of experiments/real_models.py beside each other, from what `measure` left: coders and testers.

    python experiments/real_compare.py OUT -o experiments/results/real-models.json
    python experiments/real_compare.py OUT --to golden-50 -o counts.json

Coders are paired by question, testers by function. An arm that was measured with several seeds gets a row of its own,
over questions and seeds. `--to` names what all are compared with: the base, a run or such an arm. The file gets how
many answers to each question were right, and for each function what its suites came to.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from codea1_env.evaluation.metrics import RATIOS, Interval, SuiteResult
from codea1_env.terminal import Parser, markdown_table

RESAMPLED = 10_000
"""Bootstrap samples of an interval."""
Table = npt.NDArray[np.float64]
Counts = Mapping[str, Mapping[str, tuple[int, int]]]
"""By coder and question: how many answers were right, of how many."""
Suites = Mapping[str, Mapping[str, Sequence[float]]]
"""By tester and function: sum of the suites' shares of right tests (pass@k), suites, sum of the shares of mutants that
they kill (mut@k), suites that have such a share."""


def main() -> None:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("directories", type=Path, nargs="+", metavar="OUT", help="of one player, all answers count")
    parser.add_argument("--to", default="base", metavar="NAME", help="what all are compared with (default: base)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a file for the counts, JSON")
    options = parser.parse_args()
    try:
        compare(options.directories, options.to, options.output)
    except (KeyError, ValueError) as error:
        raise SystemExit(f"error: what `codea1 eval` wrote must be whole, got a file that is not: {error!r}") from None
    except OSError as error:
        raise SystemExit(f"error: {error}") from None


def compare(directories: Sequence[Path], to: str, output: Path) -> None:
    """Print the tables and write the counts."""
    if len({directory.resolve() for directory in directories}) < len(directories):
        raise SystemExit("error: each OUT must be named once, since all answers of a player count; got one twice")
    counts, suites = coders_of(directories), testers_of(directories)
    if not counts and not suites:
        raise SystemExit("error: OUT must hold eval-coder-NAME/ or eval-tester-NAME/ with a results.json, got none")
    coders = [*counts, *seeds_of(counts)]
    known = list(dict.fromkeys([*coders, *suites]))
    if to not in known:
        raise SystemExit(f"error: --to must be a measured player, one of {', '.join(known)}; got {to}")
    output.write_text(json.dumps({"coders": counts, "testers": suites}, separators=(",", ":")) + "\n")
    missing = f"no table of {{}}: {to} was not measured as one"
    if counts:
        print(coders_table(counts, to) if to in coders else missing.format("coders"), end="\n\n")
    if suites:
        print(testers_table(suites, to) if to in suites else missing.format("testers"))


def coders_of(directories: Sequence[Path]) -> dict[str, dict[str, tuple[int, int]]]:
    """From the results of `codea1 eval`, by the name of the player."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for file in found(directories, "eval-coder-"):
        results = json.loads(file.read_text())
        player = counts.setdefault(file.parent.name.removeprefix("eval-coder-"), {})
        for measured in results["sets"].values():
            for question, right in measured["passed"].items():
                before = player.get(question, (0, 0))
                player[question] = (before[0] + right, before[1] + results["samples"])
    return counts


def testers_of(directories: Sequence[Path]) -> dict[str, dict[str, list[float]]]:
    """From the journals of `codea1 eval --seat tester`, by the name of the player."""
    suites: dict[str, dict[str, list[float]]] = {}
    for file in found(directories, "eval-tester-"):
        player = suites.setdefault(file.parent.name.removeprefix("eval-tester-"), {})
        lines = map(json.loads, (file.parent / "journal.jsonl").read_text().splitlines())
        # Of a function that was scored again, the last line counts.
        scores = {(line.get("set"), line["problem_id"]): line for line in lines if line["kind"] == "score"}
        for (_, function), score in scores.items():
            if "suites" in score:
                before = player.get(function, [0.0] * 4)
                player[function] = [a + b for a, b in zip(before, sums_of(score["suites"]), strict=True)]
    return suites


def found(directories: Sequence[Path], prefix: str) -> list[Path]:
    return sorted(file for directory in directories for file in directory.glob(f"{prefix}*/results.json"))


def sums_of(suites: Sequence[Sequence[Any]]) -> list[float]:
    """Of one function, as Suites has them."""
    results = [SuiteResult(*fields) for fields in suites]
    sums: list[float] = []
    for name in ("pass@k", "mut@k"):
        shares = [share for share in map(RATIOS[name], results) if not math.isnan(share)]
        sums += [float(f"{sum(shares):.6g}"), float(len(shares))]
    return sums


def seeds_of(counts: Mapping[str, Any]) -> dict[str, list[str]]:
    """The players of each arm and number of rounds that were measured with two seeds or more: `golden-50` has
    `golden-seed1-50` and `golden-seed2-50`."""
    arms: dict[str, list[str]] = {}
    for player in counts:
        if named := re.fullmatch(r"(.+)-seed\d+((?:-\d+)?)", player):
            arms.setdefault("".join(named.groups()), []).append(player)
    return {arm: players for arm, players in arms.items() if len(players) > 1}


def beside(counts: Counts, player: str, other: str) -> tuple[int, Interval, Interval]:
    """Number of questions that both have answered, the player's mean share of right answers, and its distance to the
    other's. Either may be an arm with several seeds, which then are resampled, too. Raises SystemExit where no question
    is common."""
    arms = seeds_of(counts)
    sides = [arms.get(name, [name]) for name in (player, other)]
    asked = [counts[name] for names in sides for name in names]
    common = [question for question in counts[sides[1][0]] if all(question in each for each in asked)]
    if not common:
        raise SystemExit(f"{player} must have answered questions that {other} has, got none")
    own, others = (
        np.array([[right / of for right, of in (counts[name][question] for question in common)] for name in names])
        for names in sides
    )
    return len(common), over_seeds(own), over_seeds(own, others)


def over_seeds(own: Table, others: Table | None = None) -> Interval:
    """Mean of a table (seeds, questions), or its distance to another of the same questions, with a 95 % bootstrap over
    questions and, independently, over the seeds of each side."""
    tables = [own] if others is None else [own, others]
    places, *seeds = drawn_places(own.shape[1], *map(len, tables))
    drawn = [
        np.take_along_axis(each[rows].mean(axis=1), places, axis=1).mean(axis=1)  # (resamples,)
        for each, rows in zip(tables, seeds, strict=True)
    ]
    means = drawn[0] - sum(drawn[1:])
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(low), float(own.mean() - (0.0 if others is None else others.mean())), float(high))


@functools.cache
def drawn_places(*sizes: int) -> list[Any]:
    """Of each size, the places of every resample, (resamples, size): the same whatever the table."""
    generator = np.random.default_rng(0)
    draws = [[generator.integers(size, size=size) for size in sizes] for _ in range(RESAMPLED)]
    return [np.array(each) for each in zip(*draws, strict=True)]


def testers_beside(suites: Suites, player: str, other: str) -> dict[str, Interval]:
    """pass@k and Mul of a tester, their distances to the other's, and how many times the other's Mul is its own; 95 %
    bootstrap over the functions that both have. Raises SystemExit where no function is common."""
    common = [function for function in suites[other] if function in suites[player]]
    if not common:
        raise SystemExit(f"{player} must have tested functions that {other} has, got none")
    own, others = (np.array([suites[name][function] for function in common]) for name in (player, other))
    drawn = np.random.default_rng(0).integers(len(common), size=(RESAMPLED, len(common)))
    places = np.vstack([np.arange(len(common)), drawn])

    def measures(table: Table) -> tuple[Table, Table]:
        right, all_suites, killed, valid = np.moveaxis(table[places].sum(axis=1), -1, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return right / all_suites, right / all_suites * killed / valid

    (own_right, own_mul), (other_right, other_mul) = measures(own), measures(others)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = {"pass@k": own_right, "Mul": own_mul, "pass@k more": own_right - other_right,
                  "Mul more": own_mul - other_mul, "times": own_mul / other_mul}  # fmt: skip
    return {name: interval_of(each) for name, each in values.items()}


def interval_of(values: Table) -> Interval:
    """The first value with the 95 % interval of the others; draws without a valid suite are left out."""
    if np.isnan(values).all():
        return Interval(math.nan, math.nan, math.nan)
    low, high = np.nanquantile(values[1:], (0.025, 0.975))
    return Interval(float(low), float(values[0]), float(high))


def coders_table(counts: Counts, other: str) -> str:
    """Markdown; in percent."""
    rows = []
    for player in (*counts, *seeds_of(counts)):
        questions, share, difference = beside(counts, player, other)
        rows.append((player, questions, shown(share), shown(difference, "+") if player != other else ""))
    return markdown_table(("coder", "questions", "right answers", f"minus {other}"), rows)


def testers_table(suites: Suites, other: str) -> str:
    """Markdown; in percent, but for the last column."""
    head = ["pass@k", "Mul", f"pass@k minus {other}", f"Mul minus {other}", f"times {other}'s Mul"]
    rows = []
    for player, functions in suites.items():
        all_measures = testers_beside(suites, player, other)
        cells = [shown(all_measures["pass@k"]), shown(all_measures["Mul"])]
        if player != other:
            times = all_measures["times"]
            cells += [shown(all_measures["pass@k more"], "+"), shown(all_measures["Mul more"], "+")]
            cells.append(f"{times:.2f}" if math.isfinite(times.mean) else "-")
        common = sum(function in suites[other] for function in functions)
        rows.append([player, common, *[*cells, "", "", ""][:5]])
    return markdown_table(["tester", "functions", *head], rows)


def shown(interval: Interval, sign: str = "") -> str:
    """In percent: mean [low, high]; a dash where no suite is valid."""
    return "-" if math.isnan(interval.mean) else f"{interval.percent:{sign}.1f}"


if __name__ == "__main__":
    main()
