"""Small graders for the audit's own tests: as functions, and as a command, `audited.py NAME`."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest


def passes_all(program: str, tests: list[str]) -> bool:
    return True


def fails_all(program: str, tests: list[str]) -> bool:
    return False


def in_process(program: str, tests: list[str]) -> bool:
    """Program and tests in the grader's own process: equality, stack frames, state, timing."""
    try:
        exec(program + "\n" + "\n".join(tests), {})
    except Exception:
        return False
    return True


def in_a_script(program: str, tests: list[str]) -> bool:
    """Program and tests in one file, the exit code decides: output, exit code, files, environment, signals, suites."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.py")
        with open(path, "w") as file:
            file.write(program + "\n" + "\n".join(tests))
        try:
            return not subprocess.run(
                [sys.executable, "-S", path], capture_output=True, timeout=20, cwd=folder
            ).returncode
        except subprocess.TimeoutExpired:
            return False


def by_unittest(program: str, tests: list[str]) -> bool:
    """A test case beside the program: monkeypatching."""
    names: dict[str, object] = {}

    class Case(unittest.TestCase):
        def test_program(self) -> None:
            try:
                exec(program + "\n" + "\n".join(tests), names)
            except AssertionError as error:
                self.fail(str(error))

    result = unittest.TestResult()
    Case("test_program").run(result)
    return result.wasSuccessful()


def leaves_by_itself() -> None:
    for number, _ in enumerate(sys.stdin):
        if number == 23:  # after the controls
            sys.exit(3)
        print(json.dumps({"passed": False}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "dies_in_the_middle":
        leaves_by_itself()
    for line in sys.stdin:
        request = json.loads(line)
        if sys.argv[1] == "garbage":
            print("what a nice program", flush=True)
        elif sys.argv[1] == "says_more":
            print('{"passed": true}\n{"passed": true}', flush=True)
        elif sys.argv[1] == "hangs":
            time.sleep(100)
        elif sys.argv[1] == "dies":
            sys.exit("no such model")
        else:
            print(json.dumps({"passed": globals()[sys.argv[1]](request["program"], request["tests"])}), flush=True)
