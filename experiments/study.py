"""The study: methods by seeds on the procedural families, with intervals. docs/results.md has the results.

    python experiments/study.py --quick --output runs/study-quick    base, golden, code_a1 by 3 seeds, bands
    python experiments/study.py --output runs/study                  every arm, 5 seeds, bands
    python experiments/study.py --presets bands mini --arms main     both families, the main arms
    python experiments/study.py --output runs/study                  again: continues
    python experiments/study.py --output runs/study --again bands/code_a1/seed0   the same numbers, or within?
    python experiments/study.py --bases 3 --seeds 3 --arms main      three base models, each with its own warm start

Every cell is a run of a recipe in its own process, one core each. Ctrl-C and the end of `--budget-min` let each
run end its round and leave a checkpoint; the same command continues. results.json, table.md and a picture of each
preset are written whenever it ends.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("train"):
    import study_report
    from study_arms import Arm, as_table, chosen_arms
    from study_cells import ROOT, Cell, Ended, Running, outcome, plan, run_cells, twins_of
    from study_numbers import compute_of, curve_of, diagnostics_of
    from tqdm import tqdm

    from codea1_env.bench.estimates import Estimate, by_base, new_run, of_share
    from codea1_env.configuration.presets import load_preset, preset_names
    from codea1_env.errors import Codea1Error, ConfigurationError, told
    from codea1_env.judging.version import require_comparable
    from codea1_env.starting import CLOSED, lost_output
    from codea1_env.training.run.provenance import code_revision, processor_name
    from codea1_env.whole_files import write_whole
    from codea1_env.yaml_files import read_yaml

MOST_SEEDS = 1_000


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    try:
        status = _run(given)
        if lost := lost_output():  # here, where it is known how to say it
            raise lost
        return status
    except (Codea1Error, OSError) as error:
        lost = lost_output() or error
        if isinstance(lost, BrokenPipeError):
            return CLOSED
        print(f"error: {told(lost)}", file=sys.stderr)
        return 2 if isinstance(error, ConfigurationError) else 1


def _run(given: argparse.Namespace) -> int:
    if given.list_arms:
        print(as_table())
        return 0
    return _again(given) if given.again else _study(given)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--output", type=Path, default=Path("runs/study"), help="directory of the study. Default: runs/study")
    add("--quick", action="store_true", help="the arms `quick` on bands with 3 seeds")
    add("--presets", nargs="+", metavar="NAME", help="bands, mini, ... Default: bands")
    add("--arms", nargs="+", metavar="NAME", help="arms, or quick, main, all. Default: all")
    add("--arm-file", type=Path, metavar="FILE", help="YAML list of your own arms, run beside the others")
    add("--seeds", type=int, metavar="N", help="seeds 0 to N - 1. Default: 5")
    add("--bases", type=int, default=1, metavar="N", help="base models, each with its own warm start. Default: 1")
    add("--config", type=Path, metavar="FILE", help="YAML overrides of every preset, e.g. `rounds: 10`")
    add("--jobs", type=int, default=_cores(), metavar="N", help="cells at a time. Default: the number of cores")
    add("--budget-min", type=float, default=float("inf"), metavar="X", help="stop after X minutes. Default: no limit")
    add("--again", metavar="CELL", help="run a finished cell again, elsewhere, and compare numbers and processors")
    add("--list-arms", action="store_true", help="print the arms as a table")
    return parser


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _study(given: argparse.Namespace) -> int:
    cells, arms = _planned(given)
    twins = twins_of(cells)
    if given.output.exists() and not given.output.is_dir():
        raise ConfigurationError(f"--output must be a directory or not exist, got the file {given.output}")
    given.output.mkdir(parents=True, exist_ok=True)
    # No run is left behind; and a shell's background jobs, whose runs would inherit it, have Ctrl-C ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    with tqdm(total=len(set(twins.values())), desc="cells", unit="cell", disable=None) as bar:
        ended = run_cells(
            cells,
            given.output,
            jobs=given.jobs,
            budget_s=60 * given.budget_min,
            show=lambda done, running: _show(bar, done, running),
        )
    try:
        _report(given.output, cells, arms, twins, ended, began)
    except OSError:
        if not ended.stopped:
            raise
    if ended.stopped:
        print(f"error: {ended.stopped}; no further cell was begun, and the same command goes on", file=sys.stderr)
    return 130 if ended.interrupted else 1 if ended.failures or ended.stopped else 0


def _planned(given: argparse.Namespace) -> tuple[list[Cell], tuple[Arm, ...]]:
    """All cells, checked before any of them runs."""
    presets, names, seeds = given.presets or ["bands"], given.arms or ["all"], 5 if given.seeds is None else given.seeds
    if given.quick:
        for name in ("presets", "arms", "seeds"):
            if getattr(given, name) is not None:
                raise ConfigurationError(f"--quick must come without --{name}, which it chooses, got both")
        presets, names, seeds = ["bands"], ["quick"], 3
    for name in presets:
        if name not in preset_names():
            raise ConfigurationError(f"--presets must be among {preset_names()}, got {name!r}")
    if not 1 <= seeds <= MOST_SEEDS:
        raise ConfigurationError(f"--seeds must be in [1, {MOST_SEEDS}], got {seeds}")
    if not 1 <= given.bases <= MOST_SEEDS:
        raise ConfigurationError(f"--bases must be in [1, {MOST_SEEDS}], got {given.bases}")
    if given.jobs < 1:
        raise ConfigurationError(f"--jobs must be at least 1, got {given.jobs}")
    if not given.budget_min > 0:
        raise ConfigurationError(f"--budget-min must be above 0 minutes, got {given.budget_min}")
    changes = (read_yaml(given.config, "--config") or {}) if given.config else {}
    if not isinstance(changes, Mapping):
        raise ConfigurationError(f"--config must be a mapping of fields to values, got {changes!r:.200}")
    arms = chosen_arms(names, given.arm_file)
    cells = plan(list(dict.fromkeys(presets)), arms, range(seeds), changes, given.bases)
    for cell in cells:
        cell.resolved()
    return cells, arms


def _show(bar: Any, done: int, running: Sequence[Running]) -> None:
    if done > bar.n and bar.disable:
        print(f"{done} of {bar.total} cells done", flush=True)
    bar.n = done
    bar.set_postfix_str(", ".join(f"{each.cell.name} {each.rounds_done()}" for each in running))


def _report(
    directory: Path, cells: Sequence[Cell], arms: Sequence[Arm], twins: dict[str, str], ended: Ended, began: str
) -> None:
    """results.json, table.md and a picture of each preset, from all that is done so far."""
    found, missing = (
        [],
        dict.fromkeys(ended.left, f"not run: {ended.stopped}" if ended.stopped else "not run yet")
        | dict(ended.failures),
    )
    for cell in cells:
        folder = directory / "cells" / twins[cell.name]
        result = outcome(folder)
        if result is not None:
            twin = {} if twins[cell.name] == cell.name else {"same_run_as": twins[cell.name]}
            seen = {"diagnostics": diagnostics_of(folder / "run"), "curve": curve_of(folder / "run")}
            seen["compute"] = compute_of(folder / "run", cell.resolved())
            found.append(result | {"name": cell.name, "arm": cell.arm.name} | seen | twin)
    for preset in sorted({cell["preset"] for cell in found}):
        judges = [cell.get("judge", 1) for cell in found if cell["preset"] == preset]
        require_comparable(judges, str(load_preset(preset).problems.family), f"cells of {preset}")
    hours = sum(result["seconds"] for result in found if "same_run_as" not in result) / 3600
    revisions = sorted({result["code"].get("git", "no checkout")[:12] for result in found})
    provenance = {
        "command": shlex.join([Path(sys.executable).name, *sys.argv]),
        "from, to": f"{began}, {datetime.now(UTC).isoformat(timespec='seconds')} (this call)",
        "machine": f"{processor_name()}, {_cores()} cores, {platform.platform()}",
        "processors of the cells": "; ".join(sorted({_processor(result) for result in found})) or "none",
        "base models": ", ".join(sorted({result.get("base_weights", "not said")[:12] for result in found})) or "none",
        "git revision of the cells": ", ".join(revisions) or "none",
        "uncommitted changes": "yes" if any(result["code"].get("dirty") for result in found) else "no",
        "hours of the cells, by the clock": f"{hours:.2f}",
        "this report": code_revision(ROOT / "benchmarks").get("git", "no checkout")[:12],
    }
    scores, order = study_report.scores_of(found), [arm.name for arm in arms]
    results = {"provenance": provenance, "cells": found, "missing": missing}
    results["estimates"] = study_report.estimates(scores)
    write_whole(directory / "results.json", json.dumps(results, indent=1) + "\n")
    table = study_report.as_markdown(scores, order, provenance, missing)
    write_whole(directory / "table.md", table)
    for preset, of_preset in scores.items():
        study_report.draw(of_preset, order, directory / f"{preset}-hidden.png")
    print(table)
    print(f"everything is in {directory}; missing cells: {len(missing)}")


def _again(given: argparse.Namespace) -> int:
    """Run one finished cell a second time and compare every number."""
    cells, _ = _planned(given)
    chosen = [cell for cell in cells if cell.name == given.again]
    before = outcome(given.output / "cells" / given.again)
    if not chosen or before is None:
        raise ConfigurationError(f"--again must be a finished cell of the study, got {given.again}")
    if chosen[0].arm.tester_of:
        raise ConfigurationError(f"--again must be a cell without another's tester, got {given.again}")
    elsewhere = given.output / "again"
    shutil.rmtree(elsewhere, ignore_errors=True)
    ended = run_cells(chosen, elsewhere, jobs=1, budget_s=float("inf"), show=lambda done, running: None)
    after = outcome(elsewhere / "cells" / given.again)
    if after is None:
        print(f"{given.again} was not finished: {ended.failures.get(given.again, 'interrupted')}", file=sys.stderr)
        return 1
    print(f"then: {_processor(before)}, base {before.get('base_weights', 'not said')[:12]}")
    print(f"now:  {_processor(after)}, base {after.get('base_weights', 'not said')[:12]}")
    alike = [cell for cell in cells if (cell.preset, cell.arm) == (chosen[0].preset, chosen[0].arm)]
    expected = _intervals(given.output, alike)
    for name, value in before["measures"].items():
        now = after["measures"].get(name)
        print(f"{name:12} {value!r} {now!r} {_within(now, expected[name])}")
    if before["measures"] == after["measures"]:
        print("the same numbers")
        return 0
    if _processor(before) == _processor(after):
        print("the numbers differ, on the same kind of processor")
        return 1
    verdict = _within(after["measures"].get(study_report.PRIMARY), expected[study_report.PRIMARY])
    print(f"the numbers differ, on another processor; the {study_report.PRIMARY} pass rate is {verdict}")
    return 0 if verdict.startswith("within") else 1


def _intervals(directory: Path, cells: Sequence[Cell]) -> dict[str, Estimate]:
    """Of every measure, where a new run of these cells' arm and preset may be expected."""
    done = [result for cell in cells if (result := outcome(directory / "cells" / cell.name))]
    (runs,) = [runs for arms in study_report.scores_of(done).values() for runs in arms.values()]
    names = {name for values in runs.values() for name in values}
    found = {name: new_run(by_base(study_report.column(runs, name))) for name in names}
    rates = set(study_report.SHOWN)
    return {name: of_share(each) if name in rates else each for name, each in found.items()}


def _within(value: float | None, expected: Estimate) -> str:
    if value is None or math.isnan(expected.low):
        return f"from {expected.runs} run: no interval"
    place = "within" if expected.low <= value <= expected.high else "outside"
    return f"{place} [{expected.low:.3f}, {expected.high:.3f}], where 95 % of new runs are ({expected.runs} runs)"


def _processor(result: Mapping[str, Any]) -> str:
    """What a cell was computed by."""
    found = result.get("processor") or {}
    told = [f"{name}={value}" for name, value in found.get("told", {}).items()]
    parts = [found.get(name, "") for name in ("model", "instructions")] + [f"torch {found.get('torch')}", *told]
    return ", ".join(parts) if found else "a processor that is not said"


if __name__ == "__main__":
    raise SystemExit(main())
