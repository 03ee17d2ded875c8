"""`module:Class`: how a configuration names a class of one's own.

Importing a module runs it. So a class is loaded only where it is used, never because a file that is read or shown names
one. Does not keep what it loads: Python does.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
from typing import TypeVar

from codea1_env.checks import require
from codea1_env.errors import ConfigurationError

Base = TypeVar("Base")
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_class_path(value: object) -> bool:
    """Whether the value is written as `module:Class`; whether there is one is not looked up."""
    return isinstance(value, str) and _PATH.fullmatch(value) is not None


def is_imported(path: str) -> bool:
    """Whether the module of `module:Class` is imported already, so that using the class runs nothing new."""
    return path.partition(":")[0] in sys.modules


def load_class(path: str, base: type[Base], name: str) -> type[Base]:
    """The class that `path` names; `name` is the option that named it, for errors.

    The module must be importable, or be a file in the working directory, in every process that uses it. Raises
    ConfigurationError where it is not, and for anything but a subclass of `base` that defines what `base` leaves open.
    """
    module_name, _, class_name = path.partition(":")
    try:
        _look_in_working_directory(module_name)
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(
            f"{name} must name a module that can be imported (installed, on PYTHONPATH, or in the working directory), "
            f"got {path!r}: {error}"
        ) from error
    found = getattr(module, class_name, None)
    is_right = isinstance(found, type) and issubclass(found, base)
    require(is_right, name, f"name a subclass of {base.__name__}", found if found is not None else path)
    open_names = sorted(getattr(found, "__abstractmethods__", ())) if inspect.isabstract(found) else []
    require(not open_names, name, f"name a class that defines {', '.join(open_names)}", path)
    assert isinstance(found, type)
    return found


def _look_in_working_directory(module_name: str) -> None:
    """Commands that are started by their path look for modules beside themselves only."""
    here, first = os.getcwd(), module_name.partition(".")[0]
    if first not in sys.modules and here not in sys.path and importlib.util.find_spec(first) is None:
        sys.path.append(here)
