"""codea1's own grading: `Arena.grade` on the readable tests. ours.py BACKEND: local, docker, docker:IMAGE or ray."""

import sys

from lines import serve

from codea1_env import Arena, Problem, open_sandbox, read_suite
from codea1_env.problems.problem import TestCase
from codea1_env.sandbox.docker.backend import DockerSandbox


def grader(backend):
    name, _, image = backend.partition(":")
    arena = Arena(DockerSandbox(image=image) if image else open_sandbox(name))

    def grade(request):
        suite = read_suite("\n".join(request["tests"]), request["entry_point"])
        problem = Problem(
            request["problem_id"],
            "What the tests say.",
            request["entry_point"],
            time_limit_s=request["time_limit_s"],
        )
        tests = [TestCase(test.call, test.stated) for test in suite.tests if not test.reason]
        (result,) = arena.grade(problem, [request["program"]], tests)
        if any(verdict is None for verdict in result.verdicts):
            raise RuntimeError("the sandbox failed")
        return bool(tests) and result.all_passed

    return grade


if __name__ == "__main__":
    serve(grader(sys.argv[1]))
