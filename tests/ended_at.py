"""Runs a command that ends in the middle of a write to a journal or a recording. Not a test module.

    python tests/ended_at.py HOW NTH COMMAND ...

HOW: SIGKILL or SIGINT, which come when half of the NTH write is in the file; or full, from which on files cannot grow;
or count, which ends nothing and says in the last line of standard error how many writes there were.
"""

import os
import resource
import signal
import sys

import codea1_env.records.journal
import codea1_env.records.recording
from codea1_env.cli import main
from codea1_env.whole_files import append_whole

how, nth = sys.argv[1], int(sys.argv[2])
written = 0


def watched(file, content, state):
    global written
    written += 1
    if written == nth and how == "full":
        limit = os.fstat(file.fileno()).st_size + len(content) // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    elif written == nth and how.startswith("SIG"):
        file.write(content[: len(content) // 2])
        os.kill(os.getpid(), getattr(signal, how))
    append_whole(file, content, state)


codea1_env.records.journal.append_whole = codea1_env.records.recording.append_whole = watched
signal.signal(signal.SIGINT, signal.default_int_handler)
status = main(sys.argv[3:])
if how == "count":
    print(written, file=sys.stderr)
sys.exit(status)
