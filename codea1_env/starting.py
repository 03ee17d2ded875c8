"""The start of a command or a recipe of ours, and the end of its output: Ctrl-C before it begins, closed streams.

Ctrl-C while it starts ends it at once with 130, as it does later, without a traceback. The first imports take longer
than a finger, and whatever is being imported may turn an exception into another one; so until `interrupts_as_usual` a
Ctrl-C ends the process where it stands, which has not begun anything. SIGTERM, as schedulers send it, is a Ctrl-C that
came to one process alone. Does not touch the signals and streams of programs that import the package, and cannot do
anything about Python's own start and its search for this package, some 30 ms in which no line of ours has run.
"""

# Nothing here may take time: `signal` and `pathlib` import for some 20 ms, what is behind them is there already.
import _signal  # type: ignore[import-not-found]  # C; typeshed leaves it out
import os
import sys

INTERRUPTED, CLOSED = 130, 141
"""Exit codes of commands and recipes: Ctrl-C; whoever read the output left."""
_PID = os.getpid()
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_RECIPES = (os.path.join(_HERE, "agents"), os.path.join(_HERE, "baselines"))
_SCRIPTS = (*_RECIPES, os.path.join(_HERE, "experiments"))


def end_on_interrupt() -> None:
    """From now on, if this process was started as `codea1` or as a recipe that lies beside the package."""
    if not _is_ours(_RECIPES):
        return
    for number, usual in ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _signal.SIG_DFL)):
        if _signal.getsignal(number) == usual:  # else the caller wants it ignored
            _signal.signal(number, _end)


def open_closed_streams() -> None:
    """A standard stream that the caller closed (`>&-`) becomes the null device, in a script of this repository too.

    Otherwise the next file that is opened gets its number, and whatever a child prints lands in that file.
    """
    if not _is_ours(_SCRIPTS):
        return
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # for good
    if sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # names of files as they are


def lost_output() -> OSError | None:
    """Write out what is buffered for standard output: None, or why that is impossible. Then the rest is dropped."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # whoever read it has gone, and needs no word
            return error
        return OSError(f"standard output must be writable, got: {error.strerror}; send it to another place")
    return None


def interrupts_as_usual() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, and so is SIGTERM, with its number: whoever calls this catches it."""
    for number, usual in ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _as_interrupt)):
        if _signal.getsignal(number) is _end:
            _signal.signal(number, usual)


def _as_interrupt(number: int, frame: object) -> None:
    if os.getpid() != _PID:  # a fork, whose parent ends it
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    _signal.signal(number, _signal.SIG_IGN)  # it is obeyed: a second one must not interrupt the end
    handler = _signal.getsignal(_signal.SIGINT)
    if callable(handler) and handler is not _signal.default_int_handler:
        handler(number, frame)
    else:
        raise KeyboardInterrupt(number)


def _end(number: int, frame: object) -> None:
    os.write(2, b"codea1: interrupted\n")
    os._exit(INTERRUPTED)


def _is_ours(folders: tuple[str, ...]) -> bool:
    # As it was typed: a process that multiprocessing spawns has its parent's sys.argv, but not this one.
    typed = sys.orig_argv
    if "codea1_env.cli" in typed or typed[1:3] == ["-m", "codea1_env"]:
        return True
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if not script or script not in typed:
        return False
    return os.path.basename(script) == "codea1" or os.path.dirname(os.path.realpath(script)) in folders
