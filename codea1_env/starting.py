"""Ctrl-C while a command or a recipe of ours starts: it ends at once with 130, as it does later, without a traceback.

The first imports take longer than a finger, and whatever is being imported may turn an exception into another one; so
until `interrupts_as_usual` a Ctrl-C ends the process where it stands, which has not begun anything. Does not touch the
signals of programs that import the package, and knows nothing of what comes before it: some 20 ms of Python's own.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

INTERRUPTED = 130
_HERE = Path(__file__).resolve().parents[1]
_RECIPES = (_HERE / "agents", _HERE / "baselines")


def end_on_interrupt() -> None:
    """From now on, if this process was started as `codea1` or as a recipe that lies beside the package."""
    if _is_ours() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def interrupts_as_usual() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt: whoever calls this catches it."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"codea1: interrupted\n")
    os._exit(INTERRUPTED)


def _is_ours() -> bool:
    # As it was typed: a process that multiprocessing spawns has its parent's sys.argv, but not this one.
    typed = sys.orig_argv
    if "codea1_env.cli" in typed:
        return True
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if not script or script not in typed:
        return False
    return Path(script).name == "codea1" or Path(script).resolve().parent in _RECIPES
