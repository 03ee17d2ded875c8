"""Kills parts of the sandbox with SIGKILL at random moments under load: what it costs in verdicts, time and remains.

    python benchmarks/torture.py {parent,zygote,container,node,all} [--kills 20] [--seed 0] [--light]

parent     `codea1 score`: its process, its whole process group, or one of the processes of its pool
zygote     the local sandbox: a zygote, its guard, both, or the candidate that runs
container  the Docker sandbox: `docker kill`, or the container's init, driver, guard or zygote (needs an engine)
node       the Ray sandbox: one of two nodes of a cluster on this machine (needs the extra `ray`)

Every verdict must be that of an undisturbed run (for a killed parent: of the next run, and no output file may look
whole), nothing may hang, and nothing may be left: processes, containers, temporary files, descriptors, threads, memory
files. Prints a table; exit code 1 where one of its counts is not 0. The load is in `torture_load.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codea1_env.extras import for_script
from codea1_env.sandbox import places
from codea1_env.terminal import Parser

with for_script("dev"):
    import psutil
    from known_answers import cheap_hostile, endless
    from remains import Remains

    from codea1_env.errors import SandboxError
    from codea1_env.problems import bundled_problems

TARGETS = ("parent", "zygote", "container", "node")
BATCH_LIMIT_S = 90.0
"""No batch takes as long on a machine that is not frozen: what does, hangs."""
_LOAD = Path(__file__).with_name("torture_load.py")


@dataclass(slots=True)
class Row:
    """What one target came to."""

    target: str
    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    skipped: str = ""


def torment_load(target: str, options: argparse.Namespace, remains: Remains) -> Row:
    """Run `torture_load.py`; see there."""
    row = Row(target)
    command = [sys.executable, str(_LOAD), target, str(options.kills), str(options.seed), str(int(options.light))]
    with _started(command, remains, stdout=subprocess.PIPE) as process:
        try:
            output, _ = process.communicate(timeout=BATCH_LIMIT_S * (options.kills + 3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR1)  # it says where it is
            time.sleep(2)
            row.hangs.append(f"{target}: no end")
            process.kill()
            output = b""
    if output and process.returncode == 0:
        report = json.loads(output.splitlines()[-1])  # Ray says things of its own
        row.kills.update(report["kills"])
        row.wrong += report["wrong"]
        row.left += report["left"]
        if report["slowest_s"] > BATCH_LIMIT_S:
            row.hangs.append(f"{target}: a batch took {report['slowest_s']:.0f} s")
    elif not row.hangs:
        row.wrong.append(f"the load ended with exit code {process.returncode}")
    row.left += remains.found()
    return row


@contextlib.contextmanager
def _started(command: list[str], remains: Remains, **streams: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "TMPDIR": str(remains.temporary)}
    with subprocess.Popen(command, env=environment, start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def recorded(light: bool) -> str:
    """Input of `codea1 score`: bundled problems with their mutants, and hostile programs among them."""
    identity = {"question": "f(x): x", "entry_point": "f", "reference_solution": "def f(x):\n    return x"}
    identity |= {"time_limit_s": 0.5, "memory_mb": 96}
    suite = "assert f(0) == 0\nassert f(1) == 1\nassert f(2) == 2"
    hostile = [known.job.source for known in [*cheap_hostile(), *endless(0.5)]]
    records: list[dict[str, object]] = []
    for number, problem in enumerate(bundled_problems()[: 8 if light else 32]):
        codes = [str(problem.reference_solution), *problem.mutants]
        text = "\n".join(str(test) for test in problem.golden_tests)
        record = {"problem_id": problem.problem_id, "question": "", "entry_point": problem.entry_point}
        record |= {"reference_solution": problem.reference_solution, "codes": codes, "suites": [[text]] * len(codes)}
        records.append(record)
        if number % 8 == 0:
            chosen = hostile[number % len(hostile) :][:4]
            records.append({"problem_id": f"h{number}", **identity, "codes": chosen, "suites": [[suite]] * len(chosen)})
    return "".join(json.dumps(record) + "\n" for record in records)


class Scoring:
    """`codea1 score` on one input, again and again, in a directory of its own."""

    def __init__(self, folder: Path, light: bool, remains: Remains) -> None:
        self.folder, self.remains = folder, remains
        self.source, self.output, self.book = folder / "in", folder / "out", folder / "book"
        self.source.write_text(recorded(light))
        self.right = self.right_book = b""
        self.calm_s = {1: BATCH_LIMIT_S, 2: BATCH_LIMIT_S}
        for workers in self.calm_s:
            began = time.monotonic()
            code = self.finish(workers)
            self.calm_s[workers] = time.monotonic() - began
            if code != 0 or self.right not in (b"", self.output.read_bytes()):
                raise SystemExit("two undisturbed runs must succeed and agree, they do not")
            self.right, self.right_book = self.output.read_bytes(), self.book.read_bytes()
            self.clear()

    def start(self, workers: int) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        files = [str(self.source), "-o", str(self.output), "--book", str(self.book)]
        command = [sys.executable, "-m", "codea1_env.cli", "score", *files, "--workers", str(workers)]
        return _started(command, self.remains, stderr=subprocess.DEVNULL)

    def finish(self, workers: int) -> int:
        """One undisturbed run: its exit code. Raises TimeoutExpired."""
        with self.start(workers) as process:
            return process.wait(BATCH_LIMIT_S)

    def clear(self) -> None:
        for path in (self.output, self.book):
            path.unlink(missing_ok=True)


def kill_parent(scoring: Scoring, what: str, dice: random.Random, row: Row) -> None:
    """One kill of a run that is under way, and whatever must hold afterwards."""
    workers = 2 if what in ("group", "pool worker") else dice.choice([1, 2])
    before = dice.choice([b"", b"of an earlier run\n"])
    if before:
        scoring.output.write_bytes(before)
    with scoring.start(workers) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(dice.uniform(0, scoring.calm_s[workers]))
        if process.poll() is not None:
            scoring.clear()
            return  # it was faster this time
        if what == "pool worker":
            pool = [child for child in psutil.Process(process.pid).children() if _is_pool_worker(child)]
            if not pool:
                process.kill()
                process.wait()
                scoring.clear()
                return
            dice.choice(pool).kill()
            code = process.wait(BATCH_LIMIT_S)
            if code != 0:
                row.wrong.append(f"a run that lost a pool worker ended with {code}")
        elif what == "group":
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        else:
            process.kill()
            process.wait()
    row.kills[what] += 1
    row.left += [f"after {what}: {thing}" for thing in scoring.remains.found()]
    if what != "pool worker":
        for path, old, new in (
            (scoring.output, before, scoring.right),
            (scoring.book, b"", scoring.right_book),
        ):
            if (path.read_bytes() if path.exists() else b"") not in (old, new):
                row.wrong.append(f"{path.name} is neither the old file nor the whole new one")
        scoring.book.unlink(missing_ok=True)
        if scoring.finish(dice.choice([1, 2])) != 0:
            row.wrong.append("the run after a kill must succeed, it did not")
    if scoring.output.read_bytes() != scoring.right or scoring.book.read_bytes() != scoring.right_book:
        row.wrong.append(f"other verdicts after {what}")
    scoring.clear()
    row.left += [f"file {path.name}" for path in scoring.folder.iterdir() if path != scoring.source]


def _is_pool_worker(process: psutil.Process) -> bool:
    try:
        return f"from {places.__name__} import" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def torment_parent(options: argparse.Namespace, remains: Remains) -> Row:
    row, dice = Row("parent"), random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="codea1-scores-") as folder:
        scoring = Scoring(Path(folder), options.light, remains)
        while row.kills.total() < options.kills and not row.hangs:
            what = ("parent", "group", "pool worker", "parent")[row.kills.total() % 4]
            try:
                kill_parent(scoring, what, dice, row)
            except subprocess.TimeoutExpired as error:
                row.hangs.append(f"{what}: {error}"[:200])
            _say(f"parent: {row.kills.total()} kills, {len(row.wrong)} wrong, {len(row.left)} left")
    row.left += remains.found()
    return row


def why_skipped(target: str) -> str:
    """What the target needs and this machine lacks."""
    try:
        if target == "container":
            from codea1_env.sandbox.docker.engine import connect
            from codea1_env.sandbox.docker.image import BASE_IMAGE, build_image

            with contextlib.closing(connect()) as client:
                if not client.images(name=BASE_IMAGE):
                    return f"the image {BASE_IMAGE} must be at hand, got none; make it: codea1 sandbox build-image"
            build_image(say=_say)
        if target == "node":
            import ray  # noqa: F401
    except (ImportError, SandboxError) as error:
        return str(error)
    return ""


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main() -> int:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=(*TARGETS, "all"))
    parser.add_argument("--kills", type=int, default=20, help="per target (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--light", action="store_true", help="a fraction of the load, for a quick look")
    options = parser.parse_args()
    rows: list[Row] = []
    for target in TARGETS if options.target == "all" else (options.target,):
        if why := why_skipped(target):
            rows.append(Row(target, skipped=why))
            continue
        _say(f"{target}: {options.kills} kills")
        with tempfile.TemporaryDirectory(prefix="ct-") as temporary:  # short: sockets of Ray lie in it
            remains = Remains(Path(temporary))
            if target == "parent":
                rows.append(torment_parent(options, remains))
            else:
                rows.append(torment_load(target, options, remains))
    for row in rows:
        for problem in (*row.wrong, *row.hangs, *row.left):
            print(f"{row.target}: {problem}")
    print("| target | kills | wrong verdicts | hangs | left behind |")
    print("|---|---|---|---|---|")
    for row in rows:
        if row.skipped:
            print(f"| {row.target} | skipped: {row.skipped} | | | |")
            continue
        kinds = ", ".join(f"{count} {what}" for what, count in sorted(row.kills.items()))
        print(
            f"| {row.target} | {row.kills.total()} ({kinds}) | {len(row.wrong)} | {len(row.hangs)} | {len(row.left)} |"
        )
    return 1 if any(row.wrong or row.hangs or row.left for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
