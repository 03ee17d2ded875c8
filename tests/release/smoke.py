"""What an installation of the package alone can do, tried from outside the tree: see `check.py`.

    python -I smoke.py TREE

TREE is an unpacked sdist, for its examples; the package itself must be the installed one. Uses no test framework and
nothing that is not the package's own requirement. Prints a line for each thing that works; the first that does not
ends it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

import codea1_env
from codea1_env.judging.version import VERSION

CODEA1 = str(Path(sysconfig.get_path("scripts")) / "codea1")
_OF_EXTRAS = (
    "language_models",
    "training",
    "adapters",
    "serving.app",
    "serving.supervisor",
    "players.hugging_face",
    "players.vllm_offline",
    "bench.estimates",
    "bench.run",
)
NEEDING_EXTRAS = tuple(f"codea1_env.{name}" for name in _OF_EXTRAS)
BY_PATH = "codea1_env.sandbox.inside"
"""Runs in a sandbox process, not from here."""
ABSENT = ("torch", "transformers", "trl", "ray", "docker", "scipy", "datasets", "matplotlib", "pytest")
ADD = {
    "problem_id": "smoke/add",
    "question": "add(a, b): the sum.",
    "entry_point": "add",
    "reference_solution": "def add(a, b):\n    return a + b\n",
    "codes": ["def add(a, b):\n    return a - b", "def add(a, b):\n    return b + a"],
    "suites": [["assert add(1, 2) == 3\nassert add(4, 0) == 4"], ["assert add(1, 2) == 4\nassert True"]],
}


def main(tree: Path) -> None:
    checks = (installation, modules, commands, scoring, text_game, evaluation, run_report, conformance, discrete_game)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for check in (*checks, missing_extras):
            check()
            said(check.__name__.replace("_", " "))
        quick_start(tree / "docs" / "quick-start.md")
        said("the quick start")
        found = sorted(path for path in (tree / "examples").glob("*.py") if runs_here(path.read_text()))
        need(len(found) > 4, f"examples that need no extra, got {[path.name for path in found]}")
        for path in found:
            need(run(sys.executable, "-I", str(path)).strip() != "", f"output of examples/{path.name}")
            said(f"examples/{path.name}")


def installation() -> None:
    home = Path(codea1_env.__file__).resolve()
    need(home.is_relative_to(Path(sysconfig.get_path("purelib")).resolve()), f"installed, not a tree's, got {home}")
    need(metadata.version("codea1-env") == codea1_env.__version__, "one version everywhere")
    need((home.parent / "py.typed").is_file(), "py.typed in the wheel")
    found = [name for name in ABSENT if importlib.util.find_spec(name)]
    need(not found, f"no package of an extra in an installation of the package alone, got {found}")


def modules() -> None:
    for module in pkgutil.walk_packages(codea1_env.__path__, "codea1_env.", onerror=fail):
        if not module.name.startswith((*NEEDING_EXTRAS, BY_PATH)):
            importlib.import_module(module.name)
    for name in codea1_env.__all__:
        getattr(codea1_env, name)


def commands() -> None:
    told = f"codea1 {codea1_env.__version__}, judge {VERSION}"
    need(run(CODEA1, "--version").strip() == told, "the versions of package and judge")
    found = re.findall(r"^    ([a-z]+)\b", run(CODEA1, "--help"), re.MULTILINE)
    need({"score", "doctor", "replay"} <= set(found), f"the commands in codea1 --help, got {found}")
    for command in found:
        run(CODEA1, command, "--help")
    report = json.loads(run(CODEA1, "doctor", "--backend", "local", "--json"))
    need(report["safe"] is True, "a sandbox that is safe on this machine (codea1 doctor says what is missing)")


def scoring() -> None:
    Path("recorded.jsonl").write_text(json.dumps(ADD) + "\n")
    run(CODEA1, "score", "recorded.jsonl", "-o", "scored.jsonl", "--suite-size", "2")
    score = json.loads(Path("scored.jsonl").read_text())
    # K = 2. a - b fails 1 + 2 and passes 4 + 0; b + a passes the corrected test.
    need([code["reward"] for code in score["codes"]] == [0.5, 1.0], "R_C of 1/2 and 1")
    # (2/2 + 1/2) / 2, and (min(1/2, 1 - 2/2) + 0) / 2
    need([row[0]["reward"] for row in score["suites"]] == [0.75, 0.0], "R_T of 3/4 and 0")


def text_game() -> None:
    from codea1_env.players import CoderRequest, GoldenTester, OracleCoder, TesterRequest
    from codea1_env.records.recording import Recorder

    problems = {problem.problem_id: problem for problem in codea1_env.bundled_problems()}
    recorder = Recorder("games.jsonl")
    game = codea1_env.parallel_env(recorder=recorder)
    _, infos = game.reset(seed=0)
    problem = problems[infos["coder_0"]["problem_id"]]
    code = OracleCoder().respond([CoderRequest(problem)])[0][0].text
    suite = GoldenTester().respond([TesterRequest(problem, code)])[0][0].text
    game.step({"coder_0": code, "tester_0": ""})
    _, rewards, _, _, _ = game.step({"coder_0": "", "tester_0": suite})
    need(rewards["coder_0"] == 1.0, f"a reward of 1 for the reference against golden tests, got {rewards}")
    game.close()
    recorder.close()
    run(CODEA1, "replay", "games.jsonl")
    run(CODEA1, "view", "games.jsonl", "-o", "games.html")
    page = Path("games.html").read_text().lower()
    need(page.startswith("<!doctype html") and "<script" in page and "<style" in page, "the viewer's parts in its page")


def evaluation() -> None:
    run(CODEA1, "eval", "--player", "oracle", "--problems", "bundled", "--limit", "2", "--n", "1", "-o", "measured")
    need("100.0" in Path("measured/table.md").read_text(), "a reference that passes all tests")


def run_report() -> None:
    Path("trained").mkdir()
    Path("trained/config.yaml").write_text("seed: 3\npreset: {rounds: 2}\n")
    run(CODEA1, "report", "trained")
    need("<!doctype html" in Path("trained/report.html").read_text().lower(), "a page of a run, without any extra")


def conformance() -> None:
    from codea1_env.envs import testing

    testing.check_turns(codea1_env.env, cycles=2)
    testing.check_parallel(codea1_env.parallel_env, cycles=2)


def discrete_game() -> None:
    import gymnasium

    from codea1_env import discrete

    game = discrete.parallel_env()
    _, infos = game.reset(seed=0)
    while game.agents:
        actions = {agent: int(infos[agent]["action_mask"].argmax()) for agent in game.agents}
        _, rewards, _, _, infos = game.step(actions)
    need(0 <= rewards["tester_0"] <= 1, f"a reward in [0, 1], got {rewards}")
    for seat in ("Coder", "Tester"):
        view = gymnasium.make(f"codea1_env/Discrete{seat}-v0")
        _, info = view.reset(seed=0)
        view.step(int(info["action_mask"].argmax()))
        view.close()


def quick_start(page: Path) -> None:
    """Its Python and the commands that it marks to be run, in order and in one empty folder."""
    here, folder = Path.cwd(), Path("quick-start")
    folder.mkdir()
    os.chdir(folder)
    block = re.compile(r"(?:^<!-- (run) -->\n)?^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    count = 0
    for mark, language, body in block.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            run(sys.executable, "-I", "-c", body)
            count += 1
        elif mark:
            for line in body.splitlines():
                run(CODEA1, *shlex.split(line)[1:])
                count += 1
    need(count >= 7, f"blocks in the quick start, got {count}")
    os.chdir(here)


def missing_extras() -> None:
    """Who asks for what an extra brings is told its name."""
    from codea1_env.discrete.solve import nash

    try:
        nash([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    except ImportError as error:
        need(".[solve]" in str(error), f"the extra `solve` in the message, got {error}")
    else:
        fail("nash without scipy")
    for arguments, extra in (
        (("data", "import", "humanevalplus", "-o", "x.jsonl"), "data"),
        (("tournament", "--coder", "hf:none", "--tester", "golden", "--questions", "1"), "train"),
        (("score", "recorded.jsonl", "-o", "y.jsonl", "--sandbox", "ray"), "ray"),
        (("score", "recorded.jsonl", "-o", "y.jsonl", "--sandbox", "docker"), "docker"),
    ):
        done = subprocess.run([CODEA1, *arguments], capture_output=True, text=True, check=False)
        told = f".[{extra}]" in done.stderr and "Traceback" not in done.stderr
        need(bool(done.returncode) and told, f"codea1 {arguments[0]} to name the extra `{extra}`, got {done.stderr}")


def runs_here(example: str) -> bool:
    """It imports nothing of an extra, the modules that need one included, asks for no arguments, and prints something:
    what a configuration names (`own_*.py`) only defines."""
    of_extras = (*ABSENT, *NEEDING_EXTRAS, "openenv", "stable_baselines3", "supersuit", "verifiers")
    imported = re.findall(r"^\s*(?:import|from) ([\w.]+)", example, re.MULTILINE)
    return (
        not any(name.startswith(of_extras) for name in imported)
        and 'SystemExit("usage' not in example
        and "print(" in example
    )


def run(*command: str) -> str:
    """What a command prints, after it has succeeded."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    need(done.returncode == 0, f"{' '.join(command)} to succeed, got exit code {done.returncode}:\n{done.stderr}")
    return done.stdout


def need(condition: bool, what: str) -> None:
    if not condition:
        fail(what)


def fail(what: str) -> None:
    raise SystemExit(f"there must be {what}")


def said(what: str) -> None:
    print(f"works: {what}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -I smoke.py TREE, an unpacked sdist")
    main(Path(sys.argv[1]).resolve())
