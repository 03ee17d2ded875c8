"""Plays the corpus as an ordinary user: run by root as a process of its own, which becomes that user for good.

Reads {"words": ..., "without": [...], "calls": n} from standard input, writes the `Played` as JSON, or {"skip": why}.
Where directories on the way to the interpreter or to this repository are closed to that user (a home of root's), they
are opened in a mount namespace of this process alone.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import stat
import sys
from pathlib import Path

from attacks.playing import play
from codea1_env.sandbox import LocalSandbox

NOBODY = 65534
_NEW_NS, _BIND, _REC, _PRIVATE = 0x20000, 4096, 16384, 1 << 18


def main() -> None:
    options = json.load(sys.stdin)
    why_not = become_nobody()
    if why_not:
        print(json.dumps({"skip": why_not}))
        return
    with LocalSandbox(without=options["without"]) as sandbox:
        played = play(sandbox, options["words"], options["calls"])
    print(json.dumps(dataclasses.asdict(played)))


def become_nobody() -> str:
    """Make this process an ordinary user's for good; or say why it cannot be."""
    try:
        _open_ways([Path(sys.base_prefix), Path(os.path.realpath(sys.executable)), Path(__file__).parents[2]])
    except OSError as error:
        return f"the interpreter must be within a user's reach, got one that is not: {error}"
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # Changing users has made this process one that /proc hides; a user's own processes are not.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    return ""


def _open_ways(needed: list[Path]) -> None:
    """Cover every closed directory above `needed` with an open one that holds just what is needed. Raises OSError."""
    closed = {parent for path in needed for parent in path.parents if not parent.stat().st_mode & stat.S_IXOTH}
    outermost = sorted(place for place in closed if not closed & set(place.parents))
    if not outermost:
        return
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(result: int, what: str) -> None:
        if result:
            raise OSError(ctypes.get_errno(), what)

    checked(libc.unshare(_NEW_NS), "unshare")
    checked(libc.mount(None, b"/", None, ctypes.c_ulong(_REC | _PRIVATE), None), "mount /")
    for place in outermost:
        inside = [path for path in needed if place in path.parents]
        inside = [path for path in inside if not set(inside) & set(path.parents)]
        handles = [os.open(path, os.O_PATH) for path in inside]
        checked(libc.mount(b"tmpfs", bytes(place), b"tmpfs", ctypes.c_ulong(0), b"mode=755"), f"mount {place}")
        for path, handle in zip(inside, handles, strict=True):
            path.mkdir(parents=True)
            source = f"/proc/self/fd/{handle}".encode()
            checked(libc.mount(source, bytes(path), None, ctypes.c_ulong(_BIND | _REC), None), f"mount {path}")
            os.close(handle)


if __name__ == "__main__":
    main()
