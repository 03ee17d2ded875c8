"""A result for people: as text for terminals, and results side by side as a table in Markdown or a page in HTML.

What graders and files are called is text of strangers. Does not measure.
"""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.audit.corpus import CLASSES, PARTS, SUITES
from codea1_env.audit.result import Result
from codea1_env.report.html_text import table, text
from codea1_env.terminal import printable

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:1200px;margin:0 auto;padding:0 16px}"
    "table{border-collapse:collapse}td,th{border:1px solid #8886;padding:4px 8px;text-align:left;vertical-align:top}"
    ".scroll{overflow-x:auto}caption{text-align:left;padding:8px 0}:root{color-scheme:light dark}"
)


def as_text(result: Result) -> str:
    """For a terminal."""
    lines = [printable(result.grader, is_line=True), f"{'class':22} {'forged':>8}  which"]
    for label in result.labels:
        graded, forged = result.tally(label)
        names = ", ".join(key.partition(" / ")[2] for key in forged)
        lines.append(f"{label:22} {f'{len(forged)} of {graded}' if graded else '-':>8}  {names}".rstrip())
    lines.append("")
    for what, keys in _lists(result):
        lines.append(f"{what}: {', '.join(keys) if keys else 'none'}")
    digests = ", ".join(f"{part} {digest}" for part, digest in result.digests.items())
    lines += [
        f"corpus: {digests}{'' if result.whole else ' (part of it, by the budget)'}; result {result.digest}",
        f"{result.seconds:.0f} s, {1 / max(result.seconds_per_verdict, 1e-6):.1f} honest verdicts a second",
        "not fooled, and fair" if result.clean else _summary(result),
    ]
    return "\n".join(lines)


def _lists(result: Result) -> list[tuple[str, tuple[str, ...]]]:
    state = tuple(each.key for each in result.played if each.then_passed)
    return [
        ("wrong programs passed after these attacks", state),
        ("honest right programs lost", result.lost),
        ("wrong controls passed, or slow ones not ended", result.accepted),
        ("side effects", result.reached),
        ("ended the grader", result.without_answer("ended")),
        ("made it give no answer", result.without_answer("silent")),
        ("made it answer something else", result.without_answer("garbled")),
        ("not graded", result.without_answer("skipped")),
    ]


def _summary(result: Result) -> str:
    counts = (
        (result.forged, "forged"),
        (result.lost, "lost"),
        (result.accepted, "wrong controls passed or slow ones not ended"),
    )
    return "NOT CLEAN: " + ", ".join(f"{len(keys)} {what}" for keys, what in counts if keys)


CLASS_HEADS = ("grader", *CLASSES, SUITES)
"""Of the first table: forged of played."""
HEADS = (
    "grader", *PARTS, "honest lost", "wrong passed, slow not ended", "ended by a program", "side effects",
    "verdicts a second",
)  # fmt: skip
"""Of the second. `honest lost`: after the +, because of the attack before."""


def _class_row(result: Result) -> list[str]:
    tallies = [result.tally(label) for label in (*CLASSES, SUITES)]
    return [result.grader, *(f"{len(forged)}/{graded}" if graded else "-" for graded, forged in tallies)]


def _row(result: Result) -> list[str]:
    cells = [result.grader]
    for part in PARTS:
        played = sum(result.tally(label, part)[0] for label in (*CLASSES, SUITES))
        forged = sum(each.forged for each in result.played if each.part == part)
        cells.append(f"{forged}/{played}" if played else "-")
    right = sum(each.kind == "right" for each in result.played)
    after = sum(each.then_lost for each in result.played)
    effects = sum(each.kind == "effect" for each in result.played)
    return [
        *cells,
        f"{len(result.lost) - after}/{right}" + (f" + {after}" if after else ""),
        str(len(result.accepted)),
        str(len(result.without_answer("ended"))),
        f"{len(result.reached)}/{effects}",
        f"{1 / max(result.seconds_per_verdict, 1e-6):.0f}",
    ]


def as_markdown(results: Sequence[Result]) -> str:
    """Two tables of results side by side: forged of played by class, and the rest."""
    tables = []
    for heads, row in ((CLASS_HEADS, _class_row), (HEADS, _row)):
        cells = [list(heads), ["---"] * len(heads), *map(row, results)]
        shown = [[printable(cell, is_line=True).replace("|", "\\|") for cell in line] for line in cells]
        tables.append("".join(f"| {' | '.join(line)} |\n" for line in shown))
    return "\n".join(tables)


def as_html(results: Sequence[Result]) -> str:
    """A page that asks nobody for anything."""
    parts = [
        table("Forged of played, by class", CLASS_HEADS, map(_class_row, results)),
        table("All together", HEADS, map(_row, results)),
    ]
    for result in results:
        rows = [(what, ", ".join(keys) or "none") for what, keys in (("forged", result.forged), *_lists(result))]
        parts.append(f"<h2>{text(result.grader)}</h2>" + table(f"result {result.digest}", ("what", "which"), rows))
    digests = "; ".join(f"{part} {digest}" for part, digest in results[0].digests.items()) if results else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>codea1 audit</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>Can the grader be fooled?</h1><p>Corpus: {text(digests)}</p>"
        f"{''.join(parts)}</body></html>\n"
    )
