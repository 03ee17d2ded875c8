"""BigCodeBench's own check of a program under its test script, a line each way, with the CPU time of all its processes.

Needs bigcodebench in an environment of its own (pip install --no-deps bigcodebench), with what the tasks import. It
runs programs without a sandbox: put a container around it.
"""

import argparse
import json
import os
import resource


def cpu_s():
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("time_limit_s", type=float, help="its limit of a whole script")
    options = parser.parse_args()
    import bigcodebench.eval as bigcodebench

    bigcodebench.TIMEOUT_LIMIT = options.time_limit_s
    answers = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        if standard == 0:
            questions = os.fdopen(os.dup(0))
        os.dup2(null, standard)
    started = os.getpid()
    for line in questions:
        asked = json.loads(line)
        before = cpu_s()
        limits = {"max_as_limit": 30 * 1024, "max_data_limit": 30 * 1024, "max_stack_limit": 10}
        status, details = bigcodebench.untrusted_check(
            asked["program"], asked["script"], "task_func", **limits, min_time_limit=1, gt_time_limit=1
        )
        if os.getpid() != started:
            os._exit(0)
        why = {name: str(text)[-300:] for name, text in details.items()}
        print(json.dumps({"status": status, "why": why, "cpu_s": cpu_s() - before}), file=answers, flush=True)


if __name__ == "__main__":
    main()
