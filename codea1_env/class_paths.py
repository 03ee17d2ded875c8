"""`module:Name`: how a configuration names code of one's own: a class, or the function of a loss.

Importing a module runs it, in every process that uses it. So it is loaded only where it is used, never because a file
that is read or shown names it. Does not keep what it loads: Python does.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from codea1_env.checks import require
from codea1_env.errors import Codea1Error, ConfigurationError, OwnCodeFailed

Base = TypeVar("Base")
Made = TypeVar("Made")
Raised = TypeVar("Raised", bound=BaseException)
_loaded: set[str] = set()
"""The names of the modules that were loaded here."""
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class PartArguments(dict[str, Any]):
    """The arguments of a part, as JSON holds them. Nobody changes them, so a configuration with some can be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(json.dumps(self, sort_keys=True)) if self else 0


def is_class_path(value: object) -> bool:
    """Whether the value is written as `module:Class`; whether there is one is not looked up."""
    return isinstance(value, str) and _PATH.fullmatch(value) is not None


def is_imported(path: str) -> bool:
    """Whether the module of `module:Class` is imported already, so that using the class runs nothing new."""
    return path.partition(":")[0] in sys.modules


def file_of(path: str, name: str, folders: Sequence[str] = ()) -> Path:
    """The file of the module in `module:Name`; imports nothing but the packages around it. As `load_name`; and refuses
    a file in one of the folders of which another takes the place."""
    module = path.partition(":")[0]
    _look_in(module, folders)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise _not_there(path, name, folders, "no such module")
    found = Path(spec.origin)
    meant = next((file for folder in folders if (file := Path(folder, f"{module}.py")).is_file()), found)
    if not meant.samefile(found):
        raise ConfigurationError(
            f"{name} must name one module, got {meant} and {found}, which is found first; rename one"
        )
    return found


def load_name(path: str, name: str, folders: Sequence[str] = ()) -> object:
    """What `path`, `module:Name`, names; None where the module has no such thing. `name`: of the option, for errors.

    The module must be importable, or be a file in one of the folders, in every process that uses it: by default in the
    working directory. Raises ConfigurationError where it is not, and whatever the module raises.
    """
    module_name, _, attribute = path.partition(":")
    require(bool(module_name), name, "be module:Name", path)
    try:
        _look_in(module_name, folders)
        _loaded.add(module_name)
        loaded = getattr(importlib.import_module(module_name), attribute, None)
        _loaded.update(_written_in(loaded))
        return loaded
    except ImportError as error:
        raise _not_there(path, name, folders, str(error)) from error
    except SystemExit as error:
        said = "must name a module that ends nothing while it is imported (if __name__ == '__main__': ...)"
        raise ConfigurationError(f"{name} {said}, got {path!r}, which called sys.exit({error.code!r})") from error
    except SyntaxError as error:
        raise ConfigurationError(f"{name} must name a module that Python can read, got {path!r}: {error}") from error


def _written_in(loaded: object) -> set[str]:
    """The modules of what a module names and of its bases: a package names what a module of it holds. Those of Python
    and, of the bases, torch run for others, too, and are left out."""
    bases = [each.__module__ for each in getattr(loaded, "__mro__", ())]
    names = [getattr(loaded, "__module__", None), *(name for name in bases if name.partition(".")[0] != "torch")]
    return {name for name in names if name and name.partition(".")[0] not in sys.stdlib_module_names}


def load_class(path: str, base: type[Base], name: str, folders: Sequence[str] = ()) -> type[Base]:
    """Likewise a class. Raises ConfigurationError for anything but a subclass of `base` that defines what `base` leaves
    open."""
    loaded = load_name(path, name, folders)
    is_right = isinstance(loaded, type) and issubclass(loaded, base)
    require(is_right, name, f"name a subclass of {base.__name__}", loaded if loaded is not None else path)
    open_names = sorted(getattr(loaded, "__abstractmethods__", ())) if inspect.isabstract(loaded) else []
    require(not open_names, name, f"name a class that defines {', '.join(open_names)}", path)
    assert isinstance(loaded, type)
    return loaded


def made(kind: Callable[..., Made], *given: object, name: str, arguments: Mapping[str, Any]) -> Made:
    """`kind(*given, **arguments)`. Raises ConfigurationError where it does not take them; `name`: of the option that
    holds the arguments."""
    require_taken(kind, *given, name=name, arguments=arguments)
    with own_exits():
        return kind(*given, **arguments)


def require_taken(kind: Callable[..., object], *given: object, name: str, arguments: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where `kind(*given, **arguments)` cannot be called, as far as a signature tells."""
    try:
        inspect.signature(kind).bind(*given, **arguments)
    except TypeError as error:
        got = dict(arguments) or "none"
        raise ConfigurationError(
            f"{name} must be what {getattr(kind, '__name__', kind)} takes, got {got}: {error}"
        ) from None
    except ValueError:
        pass  # written in C, it tells no signature


def arguments_of(part: str, path: str | None, given: object) -> PartArguments:
    """The option that holds the arguments of `part`, which `path` names. Raises ConfigurationError for what no record
    could hold, and for arguments of a built-in part."""
    name = f"{part}_args"
    is_named = isinstance(given, Mapping) and all(isinstance(key, str) for key in given)
    require(is_named, name, "be a mapping of names to values", given)
    require(not given or is_class_path(path), name, f"come with {part} of your own, module:Class", path)
    try:
        return PartArguments(json.loads(json.dumps(given, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name} must be what JSON can hold, got {given!r}: {error}") from None


def state_text(part: Any, name: str) -> str:
    """What a part remembers for a checkpoint, its `state()`, as JSON. Raises ConfigurationError for what JSON cannot
    hold; `name`: of the option that names the part."""
    state = part.state()
    try:
        return json.dumps(state)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name}: {type(part).__name__}.state must return what JSON can hold, got {state!r:.80}: {error}; return "
            "numbers and lists, e.g. tensor.tolist()"
        ) from None


def as_own(error: Raised) -> Raised | OwnCodeFailed:
    """OwnCodeFailed where the error arose below code that was loaded here and is none of the package's; any other
    error, and one that the library raises on purpose, as it is."""
    if isinstance(error, Codea1Error):
        return error
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module in _loaded and module.partition(".")[0] != "codea1_env":
            function = trace.tb_frame.f_code.co_qualname
            where = module if function == "<module>" else f"{module}:{function}"
            said = f"{where}, which is not codea1's, raised {type(error).__name__}: {error}"
            return OwnCodeFailed(said, "".join(traceback.format_exception(type(error), error, trace)))
        trace = trace.tb_next
    return error


@contextmanager
def own_exits() -> Iterator[None]:
    """In it, code of one's own that calls sys.exit ends nothing: OwnCodeFailed, as for its errors."""
    try:
        yield
    except SystemExit as error:
        if (own := as_own(error)) is error:
            raise
        raise own from error


def look_in(folders: Sequence[str]) -> None:
    """From now on, this process looks for modules in these folders, too, after all others."""
    known = {os.path.realpath(folder) for folder in sys.path}
    sys.path.extend(each for each in folders if os.path.realpath(each) not in known)
    importlib.invalidate_caches()


def _look_in(module_name: str, folders: Sequence[str]) -> None:
    """Commands that are started by their path look for modules beside themselves only. At the end: a file called like a
    module of Python must not take that one's place."""
    if module_name.partition(".")[0] not in sys.modules:
        look_in(folders or [os.getcwd()])


def _not_there(path: str, name: str, folders: Sequence[str], why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} must name a module that can be imported (installed, on PYTHONPATH, or in "
        f"{' or '.join(folders) or 'the working directory'}), got {path!r}: {why}"
    )
