"""codea1's own grading: `Arena.grade` on the readable tests. ours.py BACKEND: local, docker, docker:IMAGE or ray.

ours.py scripts: its unsealed judge, the tests as a class of unittest, as BigCodeBench has them.
"""

import argparse

from lines import as_unittest, serve

from codea1_env import Arena, LocalSandbox, Problem, open_sandbox, read_suite
from codea1_env.judging.scripts import CALLS, judge_scripts
from codea1_env.problems.problem import TestCase
from codea1_env.sandbox.docker.backend import DockerSandbox


def handed(request):
    suite = read_suite("\n".join(request["tests"]), request["entry_point"])
    problem = Problem(
        request["problem_id"],
        "What the tests say.",
        request["entry_point"],
        time_limit_s=request["time_limit_s"],
    )
    return problem, request["program"], [TestCase(test.call, test.stated) for test in suite.tests if not test.reason]


def backend_or_scripts(text):
    if text.partition(":")[0] not in ("local", "docker", "ray", "scripts"):
        raise argparse.ArgumentTypeError(f"must be local, docker, docker:IMAGE, ray or scripts, got {text!r}")
    return text


def grader(backend):
    name, _, image = backend.partition(":")
    arena = Arena(DockerSandbox(image=image) if image else open_sandbox(name))

    def passes(problem, program, tests):
        (result,) = arena.grade(problem, [program], tests)
        if any(verdict is None for verdict in result.verdicts):
            raise RuntimeError("the sandbox failed")
        return bool(tests) and result.all_passed

    return passes


def with_script(request):
    fields = {"time_limit_s": request["time_limit_s"] / CALLS, "test_script": as_unittest(request["tests"])}
    return Problem(request["problem_id"], "What the tests say.", request["entry_point"], **fields), request["program"]


def by_script():
    sandbox = LocalSandbox()
    return lambda problem, program: judge_scripts(sandbox, [(problem, program)])[0].passed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", type=backend_or_scripts, help="local, docker, docker:IMAGE, ray or scripts")
    backend = parser.parse_args().backend
    if backend == "scripts":
        serve(with_script, by_script())
    serve(handed, grader(backend))
