"""codea1's own grading: `Arena.grade` on the readable tests. ours.py BACKEND: local, docker, docker:IMAGE or ray."""

import sys

from lines import serve

from codea1_env import Arena, Problem, open_sandbox, read_suite
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


def grader(backend):
    name, _, image = backend.partition(":")
    arena = Arena(DockerSandbox(image=image) if image else open_sandbox(name))

    def passes(problem, program, tests):
        (result,) = arena.grade(problem, [program], tests)
        if any(verdict is None for verdict in result.verdicts):
            raise RuntimeError("the sandbox failed")
        return bool(tests) and result.all_passed

    return passes


if __name__ == "__main__":
    serve(handed, grader(sys.argv[1]))
