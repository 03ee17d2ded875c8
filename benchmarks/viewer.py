"""How large a page of duels is and how long a browser takes to open it: 10,000 duels, or as many as asked for.

    python benchmarks/viewer.py --duels 10000 --repeat 5

Needs Playwright and a Chromium: `make test-browser` sets up .venv-browser. Opening: from the navigation until the page
has set its data-ready, in a new browser each time. Scrolling: frames while the list is dragged over all duels.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from codea1_env import Arena, LocalSandbox, Match, bundled_problems
from codea1_env.records.recording import Recorder
from codea1_env.terminal import Parser
from codea1_env.viewer import make_page, read_games

PROGRAMS, SUITES, ASSERTS = 8, 4, 8

_SCROLL = """async () => {
  const list = document.querySelector('#list');
  const gaps = [];
  let before = performance.now();
  for (let step = 1; step <= 120; step += 1) {
    list.scrollTop = list.scrollHeight * step / 120;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - before);
    before = now;
  }
  gaps.sort((a, b) => a - b);
  return [gaps[60], gaps[118]];
}"""


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duels", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "games.jsonl"
        record(recording, given.duels)
        start = time.perf_counter()
        found = read_games(recording, 2 * given.duels)
        page = make_page("benchmark", found.games)
        made = time.perf_counter() - start
        file = Path(folder) / "page.html"
        file.write_bytes(page)
        tests = sum(len(s["tests"]) for g in found.games for p in g["programs"] for s in p["suites"])
        print(f"{found.duels} duels, {tests} asserts: recording {recording.stat().st_size / 1e6:.1f} MB, "
              f"page {len(page) / 1e6:.2f} MB, made in {made:.1f} s")  # fmt: skip
        opened, spent, frames, slowest = zip(*(open_once(file) for _ in range(given.repeat)), strict=True)
        print(f"opened in {_spread(opened)} s, {_spread(spent)} CPU-seconds (medians of {given.repeat}, extremes); "
              f"scrolling: median frame {statistics.median(frames):.1f} ms, 99th of 100 "
              f"{statistics.median(slowest):.1f} ms")  # fmt: skip


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def record(path: Path, duels: int) -> None:
    """Programs that differ, suites that differ: bundled problems, their mutants, tests right and wrong."""
    rng = random.Random(0)
    problems = bundled_problems()
    with Recorder(path) as recorder, Arena(LocalSandbox(workers=2), on_score=recorder.write) as arena:
        for start in range(0, duels, PROGRAMS * SUITES):
            problem = problems[start // (PROGRAMS * SUITES) % len(problems)]
            sources = [problem.reference_solution or "", *problem.mutants]
            codes = [f"{rng.choice(sources)}\n# sample {rng.random()}" for _ in range(PROGRAMS)]
            tests = [*problem.golden_tests, *problem.hidden_tests]
            suites = [["\n".join(_assert(rng, tests) for _ in range(ASSERTS)) for _ in range(SUITES)] for _ in codes]
            arena.play([Match(problem, tuple(codes), tuple(map(tuple, suites)))])


def _assert(rng: random.Random, tests: list) -> str:
    test = rng.choice(tests)
    return str(test) if rng.random() < 0.7 else f"assert {test.call} == {rng.randrange(100)}"


def open_once(file: Path) -> tuple[float, float, float, float]:
    """Seconds and CPU-seconds to open; milliseconds of the median and the slowest-but-one frame of a scroll."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CODEA1_CHROMIUM") or shutil.which("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        start, spent = time.perf_counter(), _cpu_seconds()
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        opened, spent = time.perf_counter() - start, _cpu_seconds() - spent
        median, slow = page.evaluate(_SCROLL)
        browser.close()
    return opened, spent, median, slow


def _cpu_seconds() -> float:
    """Of all processes that this one has started, as far as they live."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(") ", 1)[1].split()
            parents[int(stat.parent.name)], ticks[int(stat.parent.name)] = (
                int(fields[1]),
                int(fields[11]) + int(fields[12]),
            )
    return sum(ticks[process] for process in parents if _is_ours(process, parents)) / os.sysconf("SC_CLK_TCK")


def _is_ours(process: int, parents: dict[int, int]) -> bool:
    while process in parents and process != os.getpid():
        process = parents[process]
        if process == os.getpid():
            return True
    return False


if __name__ == "__main__":
    main()
