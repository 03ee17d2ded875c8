"""Ctrl-C while a command or a recipe of ours starts: it ends at once with 130, as it does later, without a traceback.

The first imports take longer than a finger, and whatever is being imported may turn an exception into another one; so
until `interrupts_as_usual` a Ctrl-C ends the process where it stands, which has not begun anything. Does not touch the
signals of programs that import the package, and cannot do anything about Python's own start and its search for this
package, some 30 ms in which no line of ours has run.
"""

# Nothing here may take time: `signal` and `pathlib` import for some 20 ms, what is behind them is there already.
import _signal  # type: ignore[import-not-found]  # C; typeshed leaves it out
import os
import sys

INTERRUPTED, CLOSED = 130, 141
"""Exit codes of commands and recipes: Ctrl-C; whoever read the output left."""
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_RECIPES = (os.path.join(_HERE, "agents"), os.path.join(_HERE, "baselines"))


def end_on_interrupt() -> None:
    """From now on, if this process was started as `codea1` or as a recipe that lies beside the package."""
    if _is_ours() and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _end)


def interrupts_as_usual() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt: whoever calls this catches it."""
    if _signal.getsignal(_signal.SIGINT) is _end:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os.write(2, b"codea1: interrupted\n")
    os._exit(INTERRUPTED)


def _is_ours() -> bool:
    # As it was typed: a process that multiprocessing spawns has its parent's sys.argv, but not this one.
    typed = sys.orig_argv
    if "codea1_env.cli" in typed:
        return True
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if not script or script not in typed:
        return False
    return os.path.basename(script) == "codea1" or os.path.dirname(os.path.realpath(script)) in _RECIPES
