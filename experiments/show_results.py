"""Prints the records in experiments/results/, and fills the tables of docs/results.md from them.

    python experiments/show_results.py                  the names of the records
    python experiments/show_results.py real-models      its tables, with where and when each was measured
    python experiments/show_results.py --fill           writes the marked tables of docs/results.md anew

Does not measure anything: docs/results.md names the command behind each record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import fineprint_table
import numpy as np
import real_compare
from study_arms import ARMS

from codea1_env.evaluation.metrics import Interval, mean_interval
from codea1_env.evaluation.rankings import selection_measures
from codea1_env.extras import for_script
from codea1_env.terminal import Parser, markdown_table

with for_script("train"):
    import shift_report
    import study_report

    from codea1_env.bench import estimates

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
PAGE = ROOT / "docs" / "results.md"
MARKED = re.compile(r"<!-- (?P<name>[\w ]+): begin -->\n(?P<body>.*?)<!-- (?P=name): end -->", re.DOTALL)
FIELDS = {
    "coder_reward": "coder's reward",
    "valid_tests": "tests that are valid",
    "killing_tests": "tests that kill",
    "trivial_tests": "tests that tell no program from another",
    "test_diversity": "different tests in a group",
    "unreadable": "suites that cannot be read",
    "vacuous_tests": "vacuous tests",
    "coder_length": "tokens of a program",
}
"""Of real-curves.json: a measure of a round, and what the table calls it."""


def main() -> int:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", metavar="NAME", nargs="*", help="records to print; none: their names")
    parser.add_argument("--fill", action="store_true", help="write the marked tables of docs/results.md anew")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in names()]:
        parser.error(f"NAME must be one of {', '.join(names())}; got {unknown[0]}")
    if options.fill:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    elif not options.names:
        print("\n".join(names()))
    for name in options.names:
        print(shown(name))
    return 0


def names() -> list[str]:
    """Of all records."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))


@cache
def record(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def shown(name: str) -> str:
    """A record as Markdown."""
    kept = record(name)
    if name in OWN:
        return OWN[name]()
    return "\n\n".join(section_of(section) for section in kept["sections"])


def section_of(section: Mapping[str, Any]) -> str:
    """What a section of a record was made by, where and when, and its tables."""
    parts = [f"## {section['section']}"]
    if section["commands"]:
        parts.append("\n".join(f"    {command}" for command in section["commands"]))
    parts += [*section["measured"], *(markdown_table(each["columns"], each["rows"]) for each in section["tables"])]
    return "\n\n".join(parts)


def filled(page: str) -> str:
    """The page with every marked table as the records have it."""
    return MARKED.sub(lambda m: f"<!-- {m['name']}: begin -->\n{BLOCKS[m['name']]()}\n<!-- {m['name']}: end -->", page)


# What single studies say.


@cache
def in_study(name: str) -> study_report.Scores:
    return study_report.scores_of(record(name)["cells"])


def study_tables(name: str) -> str:
    kept = record(name)
    return study_report.as_markdown(in_study(name), [arm.name for arm in ARMS], kept["provenance"], kept["missing"])


def own_rate(arm: str, measure: str = "hidden", study: str = "study-results") -> str:
    """Of an arm of the study on bands: mean over seeds, or over bases."""
    runs = study_report.column(in_study(study)["bands"][arm], measure)
    return without_runs(estimates.shown(estimates.mean_by_base(estimates.by_base(runs))))


def minus(first: str, second: str, measure: str = "hidden", study: str = "study-bases") -> str:
    found = study_report.paired(in_study(study)["bands"], first, second, measure)
    return without_runs(estimates.shown(found, "+")) if found else ""


def without_runs(text: str) -> str:
    return text.rsplit(" (", 1)[0]


def shift_minus(arm: str) -> str:
    found = shift_report.differences_of(record("shift-results"), "strength 1", arm, "hidden")
    return without_runs(estimates.shown(estimates.mean_by_base(estimates.by_base(found)), "+"))


def shift_rate(arm: str, setting: str = "strength 1") -> str:
    found = shift_report.values_of(record("shift-results"), setting, arm, "hidden")
    return without_runs(estimates.shown(estimates.mean_by_base(estimates.by_base(found))))


def shift_contrast(arm: str) -> str:
    return without_runs(estimates.shown(shift_report.contrast(record("shift-results"), arm, "hidden"), "+"))


@cache
def beside(player: str, other: str) -> tuple[Interval, Interval]:
    """Right answers of a real model's coder, and their distance to another's."""
    return real_compare.beside(record("real-models")["coders"], player, other)[1:]


def more(player: str, other: str) -> str:
    return real_compare.shown(beside(player, other)[1], "+")


@cache
def tester_more(player: str, measure: str) -> str:
    found = real_compare.testers_beside(record("real-models")["testers"], player, "base")
    return real_compare.shown(found[f"{measure} more"], "+")


@cache
def fineprint_minus(arm: str) -> str:
    arms, measure = fineprint_table.by_arm(record("fineprint")), "coder: passes all hidden tests"
    ours, theirs = (
        fineprint_table.table_of(arms[name], fineprint_table.MEASURES[measure]) for name in ("Code-A1", arm)
    )
    assert ours is not None
    return f"{fineprint_table.interval(ours, theirs):+.1f}"


def held_back() -> str:
    return f"{Interval(**record('held-back')['difference']):+.1f}"


def cell(name: str, first: str, row: str, column: str) -> str:
    """Of a record of tables: the table whose first column is `first`."""
    tables = [each for section in record(name)["sections"] for each in section["tables"]]
    found = next(each for each in tables if each["columns"][0] == first)
    place = found["columns"].index(column)
    return str(next(each for each in found["rows"] if each[0] == row)[place])


def right(score: Mapping[str, Any], chosen: str) -> float:
    return float(score["passed"][score[chosen]])


def pairing_minus(pair: int, way: str, other: int, other_way: str) -> str:
    """Points by which one choice of a program is more often right than another, on the same questions."""
    ours, theirs = (record("pairing")["pairs"][place]["scores"] for place in (pair, other))
    gained = [right(a, way) - right(b, other_way) for a, b in zip(ours, theirs, strict=True)]
    return percent(mean_interval(gained), "+")


def percent(interval: Interval | None, sign: str = "") -> str:
    assert interval is not None
    return f"{interval.percent:{sign}.1f}"


@cache
def pairing_table() -> str:
    kept = record("pairing")
    rows = {"chosen": "chosen by the tester", "majority": "majority by output", "random one": "a random one"}
    rows |= {"best": "the best there is", "chosen - mean": "chosen minus the mean"}
    measures = [selection_measures(pair["scores"], kept["seed"]) for pair in kept["pairs"]]
    lines = [
        [name, *(percent(each[way], "+" if " - " in way else "") for each in measures)] for way, name in rows.items()
    ]
    return markdown_table(["programs, tester", *(pair["pair"] for pair in kept["pairs"])], lines)


@cache
def wrong_programs_table(programs: str | None = None) -> str:
    sees = {"-": "does not look", "white-box": "yes", "black-box": "no"}
    shown_measures = {"exposed@1": "exposed@1", "exposed@k": "exposed@5", "inputs@k": "inputs@5"}
    shown_measures |= {"right tests@k": "right tests"}
    rows = [
        [row["programs"], row["tester"], sees[row["access"]]]
        + [percent(Interval(m["low"], m["mean"], m["high"])) for m in map(row["measures"].get, shown_measures)]
        for row in record("wrong-programs")["rows"]
        if programs in (None, row["programs"])
    ]
    return markdown_table(["programs", "tester", "sees the program", *shown_measures.values()], rows)


def curves_table() -> str:
    """The first and the last three rounds of every run."""
    rows = []
    for run, measures in record("real-curves").items():
        ends = [(mean_of(measures.get(name, [])[:3]), mean_of(measures.get(name, [])[-3:])) for name in FIELDS]
        rows.append([run, *(f"{first}, {last}" if first else "" for first, last in ends)])
    return markdown_table(["means of the first and the last three rounds", *FIELDS.values()], rows)


def mean_of(values: Sequence[float | None]) -> str:
    there = [value for value in values if value is not None]
    return f"{np.mean(there):.2f}" if there else ""


def hacking_table() -> str:
    """Of a real model that was told of the checker and trained on each kind of pay: the first and the last round."""
    rounds = record("reward-hacking-model")["rounds"]
    rows = []
    for paid_by, name in (("released", "the released semantics"), ("ours", "our verdicts")):
        of_pay = [each["rows"] for each in rounds if each["paid_by"] == paid_by]
        tricks = [np.mean([row["kind"] != "honest" for row in each]) for each in of_pay]
        passed = [np.mean([row["ours"] for row in each]) for each in of_pay]
        rows.append([name, *(f"{values[0]:.3f}, {values[-1]:.3f}" for values in (tricks, passed))])
    return markdown_table(
        ["paid by", "share of tricks: first round, last", "tests really passed: first round, last"], rows
    )


# The marked tables of docs/results.md.


class Claim(NamedTuple):
    says: str
    on: str
    figure: Callable[[], str]
    verdict: str
    """It begins with shown, not shown or refuted."""


CLAIMS = (
    Claim("A learning tester is better for the coder than golden tests", "bands, 3 bases",
          lambda: minus("code_a1", "golden"), "shown"),
    Claim("", "fine print, 0.5B, points", lambda: fineprint_minus("golden tests"), "shown"),
    Claim("", "HumanEval+, 0.5B on a GPU, points", lambda: more("code-a1-15", "golden-50"), "not shown"),
    Claim("", "HumanEval+, 0.5B on a core, points", lambda: more("preset-28", "golden-equal"), "not shown"),
    Claim("Code-A1 makes a real coder better than its base", "fine print, points",
          lambda: fineprint_minus("base"), "shown"),
    Claim("", "HumanEval+, points", lambda: more("code-a1-15", "base"), "not shown"),
    Claim("", "HumanEval+, an earlier run, points", lambda: more("code-a1-first-10", "base"),
          "shown, and it does not carry over"),
    Claim("", "the same run on 246 of MBPP+, points", held_back, "not shown"),
    Claim("A learning tester is better than the frozen base tester", "bands, one base",
          lambda: minus("code_a1", "frozen", study="study-results"), "shown"),
    Claim("", "bands, 3 bases", lambda: minus("code_a1", "frozen"), "not shown"),
    Claim("", "HumanEval+, 0.5B on a core, points", lambda: more("preset-seed1-28", "frozen-preset-seed1-28"),
          "not shown"),
    Claim("", "HumanEval+, 0.5B on a GPU, points", lambda: more("code-a1-15", "frozen-seed0-15"),
          "not shown: the frozen tester has one run"),
    Claim("", "fine print, points", lambda: fineprint_minus("frozen tester"), "refuted there"),
    Claim("", "matrix game",
          lambda: cell("matrix-study", "ordering", "co-trained", "hidden, held out: minus frozen tester"),
          "not shown"),
    Claim("The seats must learn together: a finished, frozen tester is not enough", "bands, 3 bases",
          lambda: minus("code_a1", "frozen_trained"), "refuted there"),
    Claim("", "bugs that move", lambda: shift_minus("frozen_trained"), "shown"),
    Claim("Moving bugs are the reason", "bugs that move, strength 1 minus strength 0",
          lambda: shift_contrast("frozen_trained"), "not shown"),
    Claim("Two models are better than one in both seats", "bands, 3 bases", lambda: minus("code_a1", "self_play"),
          "not shown: the one model has half the weights"),
    Claim("", "HumanEval+, 0.5B on a core, points", lambda: more("preset-seed1-28", "self-play-preset-seed1-26"),
          "not shown"),
    Claim("A tester that sees the program is better", "bands, 3 bases", lambda: minus("code_a1", "black_box"),
          "not shown"),
    Claim("", "bugs that move", lambda: shift_minus("black_box"), "refuted there"),
    Claim("The Mistake Book helps", "bands, one base", lambda: minus("code_a1", "no_book", study="study-results"),
          "not shown"),
    Claim("", "bands, 16 visits to a question, 3 bases", lambda: minus("few_questions", "few_questions_no_book"),
          "refuted there"),
    Claim("", "bugs that move", lambda: shift_minus("no_book"), "shown, and worth .01"),
    Claim("The Mistake Book prevents forgetting", "matrix game, regressions without it minus with it",
          lambda: cell("matrix-study", "book", "no book", "regressions: minus co-trained"), "not shown"),
    Claim("Without a reference, self-play colludes", "matrix game, gap between reward and truth",
          lambda: cell("matrix-study", "collusion", "one learner, no reference",
                       "collusion gap: minus two learners, reference"),
          "shown; two learners without a reference do the same"),
    Claim("Kills fall as alpha rises", "bands, 3 bases, alpha 0 minus 1",
          lambda: minus("alpha_0.0", "alpha_1.0", "input_kills"), "shown"),
    Claim("Validity rises with alpha", "bands, 3 bases, alpha 1 minus 0",
          lambda: minus("alpha_1.0", "alpha_0.0", "valid"), "not shown"),
    Claim("Paying for validity alone harms the coder", "bands, 3 bases, Code-A1 minus alpha 1",
          lambda: minus("code_a1", "alpha_1.0"), "shown"),
    Claim("Correcting wrong values helps the coder", "bands, one base, with minus without",
          lambda: minus("code_a1", "no_correction", study="study-results"), "shown"),
    Claim("Training makes a tester that aims better", "bands, 3 bases",
          lambda: minus("code_a1", "base", "input_kills"), "shown"),
    Claim("Training makes a tester that states more right values", "bands, 3 bases",
          lambda: minus("code_a1", "base", "valid"), "not shown"),
    Claim("", "functions, pass@5, earlier run, points", lambda: tester_more("code-a1-first-15", "pass@k"), "shown"),
    Claim("", "functions, pass@5, preset on a core, points", lambda: tester_more("preset-seed0-28", "pass@k"),
          "not shown"),
    Claim("A tester's choice among programs beats a majority", "HumanEval+, points",
          lambda: pairing_minus(0, "chosen", 0, "majority"), "shown"),
    Claim("A trained tester chooses better than its base", "HumanEval+, points",
          lambda: pairing_minus(1, "chosen", 0, "chosen"), "refuted for that run"),
)  # fmt: skip
"""An empty claim is the one above it, measured elsewhere."""


@cache
def claims_table() -> str:
    rows = [[claim.says or "the same", claim.on, claim.figure(), claim.verdict] for claim in CLAIMS]
    return markdown_table(["claim", "measured on", "difference [95 %]", "verdict"], rows)


BANDS = {
    "base": "base model",
    "golden": "golden tests",
    "frozen": "base tester, frozen",
    "self_play": "self-play",
    "black_box": "Code-A1, black box",
    "frozen_trained": "finished tester of Code-A1, frozen",
    "code_a1": "Code-A1",
    "hidden": "hidden tests as the reward: the ceiling",
}


def bands_table() -> str:
    """Five seeds on one base, and three bases of another day."""
    rows = []
    for arm, name in BANDS.items():
        over = own_rate(arm, study="study-bases") if arm in in_study("study-bases")["bands"] else ""
        kills = own_rate(arm, "input_kills") if arm in ("base", "self_play", "black_box", "code_a1") else ""
        rows.append([name, own_rate(arm), over, kills])
    return markdown_table(
        ["", "coder: hidden, one base", "coder: hidden, 3 bases", "tester: inputs that kill, one base"], rows
    )


CODERS = {
    "base": "base",
    "golden-50": "golden tests, 50 rounds, GPU",
    "code-a1-15": "Code-A1, 15 rounds, GPU",
    "frozen-seed0-15": "frozen tester, 15 rounds, GPU",
    "golden-preset-28": "golden tests, 28 rounds, one core",
    "golden-equal": "golden tests, about the compute of Code-A1, one core",
    "preset-28": "Code-A1, 28 rounds, one core",
    "shared-28": "Code-A1, tests shared by a question's programs, one core",
    "union-28": "Code-A1, all suites on all programs, one core",
    "mixed-28": "Code-A1, questions of MBPP and LeetCode, one core",
    "frozen-preset-seed1-28": "frozen tester, 28 rounds, one core",
    "self-play-preset-seed1-26": "self-play, about the compute of Code-A1, one core",
    "derived-preset-seed1-28": "9 to 64 tests of the reference for each question, one core",
    "code-a1-first-10": "Code-A1, an earlier run, GPU",
}


def coders_table() -> str:
    counts = record("real-models")["coders"]
    rates = {player: np.mean([hits / of for hits, of in each.values()]) for player, each in counts.items()}
    rows = []
    for player, name in CODERS.items():
        share, difference = beside(player, "base")
        seeds = [100 * (rates[seed] - rates["base"]) for seed in real_compare.seeds_of(counts).get(player, [player])]
        told = [real_compare.shown(difference, "+"), ", ".join(f"{seed:+.1f}" for seed in seeds)]
        rows.append([name, real_compare.shown(share), *(told if player != "base" else ["", ""])])
    return markdown_table(["coder", "right answers, %", "minus the base", "each seed"], rows)


def shift_table() -> str:
    arms = {
        "code_a1": "Code-A1",
        "frozen_trained": "against its finished tester",
        "frozen_early": "against its tester of round 30",
        "frozen": "against the base tester",
    }
    settings = ("strength 1", "strength 0")
    rows = [[name, *(shift_rate(arm, setting) for setting in settings)] for arm, name in arms.items()]
    return markdown_table(["coder, hidden", *settings], rows)


def matrix_table() -> str:
    kept = ("base", "golden tests", "frozen tester", "co-trained", "co-trained, black box", "finished tester")
    columns = ("hidden, held out", "valid", "kills")
    rows = [[row, *(cell("matrix-study", "ordering", row, column) for column in columns)] for row in kept]
    return markdown_table(["", *columns], rows)


def graders_table() -> str:
    columns = ("frozen", "later", "honest lost", "side effects")
    found = next(
        each
        for section in record("graders")["sections"]
        for each in section["tables"]
        if each["columns"][:2] == ["grader", "frozen"]
    )
    places = [found["columns"].index(column) for column in columns]
    return markdown_table(["grader", *columns], [[row[0], *(row[place] for place in places)] for row in found["rows"]])


OWN: dict[str, Callable[[], str]] = {
    "demo": lambda: demo_table(),
    "fineprint": lambda: "\n\n".join(
        make(record("fineprint"))
        for make in (
            fineprint_table.arms_table,
            fineprint_table.pairs_table,
            fineprint_table.clauses_table,
            fineprint_table.curve_table,
        )
    ),
    "held-back": lambda: f"{record('held-back')['questions']}, coder minus base, in points: {held_back()}",
    "pairing": pairing_table,
    "real-curves": curves_table,
    "real-models": lambda: "\n\n".join(
        make(record("real-models")[seat], "base")
        for make, seat in ((real_compare.coders_table, "coders"), (real_compare.testers_table, "testers"))
    ),
    "reward-hacking-model": hacking_table,
    "shift-results": lambda: shift_report.tables(record("shift-results")),
    "study-bases": partial(study_tables, "study-bases"),
    "study-results": partial(study_tables, "study-results"),
    "wrong-programs": wrong_programs_table,
}
"""Records that have tables of their own; the others hold sections."""


def demo_table() -> str:
    from demo import table_of  # only now: it needs torch

    return table_of(record("demo"))


BLOCKS: dict[str, Callable[[], str]] = {
    "claims": claims_table,
    "fineprint": cache(lambda: fineprint_table.arms_table(record("fineprint"))),
    "fineprint curve": lambda: fineprint_table.curve_table(record("fineprint")),
    "bands": bands_table,
    "coders": coders_table,
    "shift": shift_table,
    "matrix": matrix_table,
    "hacking": hacking_table,
    "pairing": pairing_table,
    "wrong programs": partial(wrong_programs_table, "one of each question"),
    "graders": graders_table,
    "costs": lambda: markdown_table(*record("costs")["sections"][0]["tables"][0].values()),
}


def blocks_of(page: str) -> Iterator[tuple[str, str]]:
    """Name and body of every marked table."""
    for found in MARKED.finditer(page):
        yield found["name"], found["body"]


if __name__ == "__main__":
    raise SystemExit(main())
