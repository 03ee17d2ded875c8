"""Every exception that the library raises on purpose, in one tree.

    Codea1Error
    ├── ConfigurationError      an argument outside its range            (also a ValueError)
    ├── FormatError             a file or record that cannot be read      (also a ValueError)
    │   ├── ProblemFormatError
    │   └── BookFormatError
    ├── SeatFailed              a seat of a distributed run, or its arena, failed or is gone
    ├── PlayerError             a player gave no answer: never an empty one, never a score
    │   ├── PlayerUnavailable   its server cannot be reached, is overloaded or too slow, after all attempts
    │   ├── PlayerRefused       its server does not take the request: key, model, quota, arguments
    │   └── PlayerGarbled       its server answers what the protocol does not allow, after all attempts
    ├── OwnCodeFailed           code of the caller's own, named as module:Name, raised an error
    ├── UnusableReference       a problem whose reference solution cannot serve as the oracle
    └── SandboxError            infrastructure failed: never a verdict, never a score
        ├── PackageMissing      a job asks for a package that is not installed where the sandbox runs
        └── SandboxUnsafe       a guarantee that the caller did not waive is missing here

Messages say what the value must be, what it was, and, where it helps, how to fix it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def told(error: BaseException) -> str:
    """The error's message; of a file that the system refuses, one that says must, got and fix."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str | bytes | os.PathLike):
        return str(error)
    if error.strerror != os.strerror(error.errno or 0):  # a message of our own
        return f"{os.fsdecode(error.filename)} {error.strerror}"
    return f"{os.fsdecode(error.filename)} must be accessible, got: {error.strerror}; check its path and permissions"


class Codea1Error(Exception):
    """Base of all errors raised on purpose."""


class ConfigurationError(Codea1Error, ValueError):
    """An argument is outside its stated range."""


class FormatError(Codea1Error, ValueError):
    """A file or a record does not have the stated form."""


class ProblemFormatError(FormatError):
    """A problem, or a line of a problem file, does not have the stated form."""


class BookFormatError(FormatError):
    """A saved Mistake Book does not have the stated form."""


@contextmanager
def about(what: str) -> Iterator[None]:
    """What is wrong with a configuration or a format in this block says what it is about: `WHAT: MESSAGE`."""
    try:
        yield
    except (ConfigurationError, FormatError) as error:
        raise type(error)(f"{what}: {error}") from None


class PlayerError(Codea1Error):
    """A player could not answer. No answer is made up."""


class PlayerUnavailable(PlayerError):
    """The player's server could not be reached, was overloaded or too slow, in every attempt."""


class PlayerRefused(PlayerError):
    """The player's server does not take the request, and would not take it again."""


class PlayerGarbled(PlayerError):
    """The player's server gave an answer that the protocol does not allow, in every attempt."""


class OwnCodeFailed(Codea1Error):
    """The caller's own code raised an error. `args`: the message in one line, and the traceback within that code."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnusableReference(Codea1Error):
    """The reference solution does not load or defines no such entry point, so no test can be validated."""


class SeatFailed(Codea1Error):
    """A seat of a distributed run, or its arena, failed or is gone. The message says which and why, in one line."""


class SandboxError(Codea1Error):
    """The sandbox itself failed. The work it was given has no verdict and no score."""


class PackageMissing(SandboxError):
    """A job asks for a third-party package that is not installed where the sandbox runs."""


class SandboxUnsafe(SandboxError):
    """A layer of isolation that the caller did not waive by name is not available on this machine."""
