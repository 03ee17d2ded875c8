"""What the graders here share: lines in, lines out, and nothing that a program prints gets in between.

Stands alone: each grader runs in an environment of its own, without codea1.
"""

import json
import os
import sys


def serve(grade):
    """Answer every line of standard input with what `grade(request)` says: True, False, or None where it does not
    grade such."""
    answers, questions = os.dup2(1, 250), os.fdopen(os.dup2(0, 251), "rb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.set_inheritable(250, False)
    os.set_inheritable(251, False)
    for line in questions:
        request = json.loads(line)
        try:
            answer = {"passed": grade(request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
            print(answer["error"], file=sys.stderr)
        os.write(answers, json.dumps(answer).encode() + b"\n")
