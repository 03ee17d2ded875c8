"""The report as one HTML file: no script, no request to anybody, readable narrow and wide, light and dark, and aloud.

Pure but for the style sheet beside it. What a run was configured to do otherwise than the paper and than other runs
stands in it field by field. What stands in a run's files is text of strangers: it is escaped, and a policy that allows
nothing but this one style sheet stands at the head of the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from codea1_env import __version__
from codea1_env.configuration.presets import load_preset
from codea1_env.judging.scripts import UNSEALED_REWARDS
from codea1_env.report.duels import ORDERS, KeptDuels
from codea1_env.report.html_text import GAP, Link, listed, table, text
from codea1_env.report.panels import CHAPTERS, charts_of
from codea1_env.report.runs_read import RunRead
from codea1_env.report.svg_chart import bar_sample, legend, line_chart, shown, stacked_bar

REFRESH_S = 5
"""Seconds between two looks at a run that goes on."""
FULLEST = 10
"""Questions of the Mistake Book that are listed."""


@dataclass(frozen=True, slots=True)
class RunOnPage:
    """A run on the page."""

    run: RunRead
    kept: KeptDuels
    viewer: str = ""
    """Relative address of the viewer's page of `kept`, its path quoted, for links into it; empty: no links."""


def page(shown_runs: Sequence[RunOnPage], made: str, *, refreshes: bool = False) -> str:
    """The whole page. `made`: date and time. `refreshes`: the browser asks for it again every few seconds."""
    runs = [each.run for each in shown_runs]
    heading = runs[0].shown if len(runs) == 1 else f"{len(runs)} runs side by side"
    title = "codea1: " + ", ".join(run.shown for run in runs)
    sections = [*_sections(runs, shown_runs)]
    ways = "".join(f'<a href="#{anchor}">{text(name)}</a>' for anchor, name, _ in sections)
    body = "".join(f'<section id="{anchor}"><h2>{text(name)}</h2>{inner}</section>' for anchor, name, inner in sections)
    live = " It is made anew every few seconds." if refreshes else ""
    return _document(
        title,
        f"<header><h1>{text(heading)}</h1><p>Made {text(made)} by codea1 {text(__version__)}.{live}</p>"
        f'<nav aria-label="sections">{ways}</nav></header><main>{body}</main>',
        refreshes=refreshes,
    )


def notice(message: str) -> str:
    """A page that says one thing and looks again."""
    return _document("codea1", f"<main><h1>Nothing to show</h1><p>{text(message)}</p></main>", refreshes=True)


def _document(title: str, body: str, *, refreshes: bool) -> str:
    style = resources.files("codea1_env.report").joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    again = f'<meta http-equiv="refresh" content="{REFRESH_S}">' if refreshes else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{again}'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{text(title)}</title><style>{style}</style></head><body>{body}</body></html>\n'
    )


def _sections(runs: Sequence[RunRead], shown_runs: Sequence[RunOnPage]) -> Iterator[tuple[str, str, str]]:
    """(anchor, heading, HTML) of whatever there is something to say about."""
    yield "runs", "The run" if len(runs) == 1 else "The runs", f'<div class="cards">{"".join(map(_card, runs))}</div>'
    if final := _final(runs):
        yield "outcome", "Outcome", final
    for number, (chapter, panels) in enumerate(CHAPTERS.items()):
        figures = ""
        for panel in panels:
            for chart in charts_of(panel, runs):
                lines = legend((line.style, line.label) for line in chart.series)
                figures += (
                    f"<figure><figcaption><h3>{text(chart.title)}</h3><p>{text(panel.text)}</p></figcaption>"
                    f"{line_chart(chart)}{lines}</figure>"
                )
        if figures:
            book = _fullest(runs) if chapter == "Mistake Book" else ""
            yield f"chapter{number}", chapter, f'<div class="charts">{figures}</div>{book}'
    if duels := "".join(_duels(each, f"{each.run.shown}: " if len(runs) > 1 else "") for each in shown_runs):
        yield "duels", "Duels worth a look", duels
    if times := _times(runs):
        yield "time", "Where the time goes", times
    if configuration := _configuration(runs):
        yield "configuration", "Configuration", configuration


def _card(run: RunRead) -> str:
    planned = f" of {run.rounds_planned}" if run.rounds_planned else ""
    starts = run.config.get("starts")
    last = starts[-1] if isinstance(starts, list) and starts and isinstance(starts[-1], dict) else {}
    versions = last.get("versions")
    facts = {
        "rounds done": f"{run.rounds_done}{planned}",
        "preset": run.preset.get("name"),
        "seed": run.config.get("seed"),
        "engine": run.config.get("engine"),
        "started": last.get("started"),
        "starts": len(starts) if isinstance(starts, list) and len(starts) > 1 else None,
        "machine": last.get("platform"),
        "versions": ", ".join(f"{k} {v}" for k, v in versions.items()) if isinstance(versions, dict) else None,
        "directory": run.given,
        "trust": UNSEALED_REWARDS if run.is_unsealed else None,
    }
    shown_facts = "".join(
        f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items() if value is not None
    )
    notes = f'<div class="notes">{listed(run.notes)}</div>' if run.notes else ""
    failure = (
        f"<details><summary>Why it failed</summary><pre>{text(run.failure)}</pre></details>" if run.failure else ""
    )
    return (
        f'<article class="card"><h3>{text(run.shown)}</h3><p class="status">{text(run.status)}</p>{notes}'
        f"<dl>{shown_facts}</dl>{failure}</article>"
    )


def _final(runs: Sequence[RunRead]) -> str:
    """Base against trained; where a run has not come to its end, its latest evaluations."""
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for run in runs:
        for row in run.final:
            told[row.name][run.shown] = (
                f"{row.base:.3f}{GAP}\N{RIGHTWARDS ARROW}{GAP}{row.trained:.3f} "
                f"({row.trained - row.base:+.3f}{GAP}[{row.low:+.3f},{GAP}{row.high:+.3f}])"
            )
    caption = "base \N{RIGHTWARDS ARROW} trained, held-out problems (difference, its 95 % interval over problems)"
    return _by_run(caption, "measure", told, runs) + _latest([run for run in runs if not run.final])


def _latest(runs: Sequence[RunRead]) -> str:
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for run in runs:
        for record in run.records:
            for name, value in record.values.items() if record.kind == "evaluation" else ():
                told[f"{record.seat}: {name}"][run.shown] = f"{shown(value)} (round {record.rounds_done})"
    return _by_run("latest evaluation, held-out problems", "measure", told, runs)


def _by_run(caption: str, head: str, told: Mapping[str, Mapping[str, str]], runs: Sequence[RunRead]) -> str:
    """A table with a column for each run; empty where nothing is told."""
    names = [run.shown for run in runs]
    rows = [[each, *(by_run.get(name, "-") for name in names)] for each, by_run in told.items()]
    return table(caption, [head, *names], rows) if rows else ""


def _fullest(runs: Sequence[RunRead]) -> str:
    tables = ""
    for run in runs:
        if rows := [(problem_id, tests, shown(weight)) for problem_id, tests, weight in run.book[:FULLEST]]:
            caption = f"{run.shown}: fullest of the {len(run.book)} questions in the book at the end"
            tables += table(caption, ["question", "tests", "failures minus passes"], rows)
    return tables


def _duels(shown_run: RunOnPage, owner: str) -> str:
    """Best and worst of the duels that a run kept; empty where it kept none. `owner`: before every caption."""
    kept, viewer = shown_run.kept, shown_run.viewer
    if not kept.duels:
        return f'<div class="notes">{text(kept.note)}</div>' if kept.note else ""
    tables = ""
    for kind in ORDERS:
        rows = []
        for duel in kept.first(kind):
            link = Link(f"#{duel.address}", f"{viewer}#{duel.address}" if viewer else "")
            rewards = (f"{reward:.3f}" for reward in (duel.coder_reward, duel.tester_reward))
            rows.append((link, duel.origin, duel.problem_id, *rewards))
        tables += table(f"{owner}{kind}", ["duel", "from", "question", "R_C", "R_T"], rows)
    number = f"{len(kept.duels)} duels"
    told = f"{owner}{number}: {kept.left_out}" if kept.left_out else f"{owner}all {number}"
    whole = f'<p><a href="{text(viewer)}#1.1.1">{text(told)}</a></p>' if viewer else ""
    return whole + tables


def _times(runs: Sequence[RunRead]) -> str:
    splits = [(run, split) for run in runs for split in time_splits(run)]
    most = max((sum(seconds.values()) for _, (_, seconds) in splits), default=0.0)
    bars = ""
    for run, (who, seconds) in splits:
        words = ", ".join(f"{name} {shown(round(seconds[name], 3))} s" for name in PARTS if name in seconds)
        owner = f"{run.shown}: " if len(runs) > 1 else ""
        bars += (
            f'<div class="split"><h3>{text(owner + who)}, {shown(round(sum(seconds.values()), 3))} s a round</h3>'
            f"{stacked_bar([(name, seconds.get(name, 0.0)) for name in PARTS], most)}<p>{text(words)}</p></div>"
        )
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for run in runs:
        for name, value in run.seconds.items():
            told[name][run.shown] = f"{value:.0f} s"
    whole = _by_run("the whole run", "part", told, runs)
    note = "<p>Medians over rounds. While a seat waits, the other one has the machine.</p>" if bars else ""
    return note + (legend(enumerate(PARTS), bar_sample) if bars else "") + bars + whole


def _configuration(runs: Sequence[RunRead]) -> str:
    known = [run for run in runs if run.preset]
    sections = ""
    if len(known) > 1:
        rows = differences_between(known)
        names = ["field", *(run.shown for run in known)]
        sections += (
            table("what differs between the runs", names, rows) if rows else "<p>The runs are configured alike.</p>"
        )
    for run in known:
        owner = f"{run.shown}: " if len(known) > 1 else ""
        stated = stated_differences(run)
        if stated:
            sections += f"<h3>{text(owner)}the preset's remarks on the paper</h3>{listed(stated)}"
        changed = differences_from_paper(run)
        if changed:
            inner = table(f"{owner}differs from the paper's run", ["field", "paper (preset 1.5b)", "this run"], changed)
            summary = f"{owner}{len(changed)} fields differ from the paper's run"
            sections += f"<details><summary>{text(summary)}</summary>{inner}</details>"
    tail = (
        "<p>What the method here does otherwise than paper and released code, formula by formula, is in "
        "docs/deviations.md of the source.</p>"
    )
    return sections + tail if sections else ""


PARTS = ("generating", "learning", "waiting", "parsing", "judging", "rewarding", "other")
"""A seat has the first three, the arena the next three; `other`: of the arena's time, what they leave."""


def time_splits(run: RunRead) -> Iterator[tuple[str, dict[str, float]]]:
    """Of each seat that logged some, and of the arena: whose, and the median seconds over rounds, by part."""
    for seat in run.seats():
        if seconds := _medians(run, "seat", seat, PARTS[:3]):
            yield seat, seconds
    arena = _medians(run, "round", "", (*PARTS[3:6], "scoring"))
    left = arena.pop("scoring", None)
    if left is not None or arena:
        left = (left or 0.0) - sum(arena.values())
        yield "arena", arena | ({"other": left} if left > 0 else {})


def _medians(run: RunRead, kind: str, seat: str, parts: tuple[str, ...]) -> dict[str, float]:
    seconds = {part: [value for _, value in run.points(kind, seat, f"seconds_{part}")] for part in parts}
    return {part: max(0.0, statistics.median(values)) for part, values in seconds.items() if values}


PAPER = "1.5b"
"""The preset of the paper's run; its larger pairs differ in the model alone."""
NOT_COMPARED = (
    "name",
    "differences",
    "placement",
    "memory",
    "warm_start",
    "patience_s",
    "arenas",
    "save_rounds",
    "keep_checkpoints",
)
"""Names, places and devices are no part of the method."""
OF_ANOTHER_KIND = ("problems", "model")
"""Sections that may have other fields altogether."""
MISSING = "-"


def differences_from_paper(run: RunRead) -> list[tuple[str, str, str]]:
    """Every field of the method whose value is not that of the paper's preset, in the presets' order: its name, the
    paper's value, the run's; a dash where a side has none of that name.

    A run of an older version lacks fields that came later: they are as the paper's.
    """
    paper, own = _flat(load_preset(PAPER, None).to_dict()), _flat(run.preset)
    return [
        (name, paper.get(name, MISSING), own.get(name, MISSING))
        for name in dict.fromkeys([*paper, *own])
        if name.split(".")[0] not in NOT_COMPARED
        and (name in own or name.split(".")[0] in OF_ANOTHER_KIND)
        and paper.get(name) != own.get(name)
    ]


def stated_differences(run: RunRead) -> list[str]:
    """What the preset says of itself."""
    differences = run.preset.get("differences")
    return [str(sentence) for sentence in differences] if isinstance(differences, list) else []


def differences_between(runs: Sequence[RunRead]) -> list[list[str]]:
    """One row for every field that is not the same in all runs, seed and engine included: its name, then each value."""
    flat = [{"seed": _shown(run.config.get("seed")), "engine": _shown(run.config.get("engine"))} for run in runs]
    flat = [top | _flat(run.preset) for top, run in zip(flat, runs, strict=True)]
    names = dict.fromkeys(name for fields in flat for name in fields if not name.startswith("differences"))
    rows = [[name, *(fields.get(name, MISSING) for fields in flat)] for name in names]
    return [row for row in rows if len(set(row[1:])) > 1]


def _flat(section: Mapping[Any, Any], prefix: str = "") -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in section.items():
        if isinstance(value, Mapping):
            fields |= _flat(value, f"{prefix}{name}.")
        else:
            fields[f"{prefix}{name}"] = _shown(value)
    return fields


def _shown(value: Any) -> str:
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        value = int(value)  # 8.0 and 8 are one setting
    return value if isinstance(value, str) else json.dumps(value, default=str)
