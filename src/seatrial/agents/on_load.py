"""Being told when a module is loaded, without loading it.

A framework may be imported only inside an agent's first call. A finder on `sys.meta_path` waits for the modules that
somebody asked about. It looks at names, leaves finding and loading to the others, and is not there at all where none of
them is installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["when_loaded"]

Then = Callable[[ModuleType], None]

_THEN: dict[str, Then] = {}
_TOLD: dict[str, ModuleType] = {}
"""Modules that `then` was called with, so that asking once more costs nothing."""


def when_loaded(name: str, then: Then) -> None:
    """Call `then(module)`: now where the module of this name is loaded, else as soon as it is.

    There is one `then` a module: the last one counts. It may be called more than once with the same module.
    """
    loaded = sys.modules.get(name)
    if loaded is not None and _TOLD.get(name) is not loaded:
        then(importlib.import_module(name))  # which waits when another thread is still loading it
        _TOLD[name] = loaded
    _THEN[name] = then
    if _finder not in sys.meta_path and _is_installed(name.partition(".")[0]):  # searches the path: for one is enough
        sys.meta_path.insert(0, _finder)  # a list that other threads may be reading: nothing is ever removed


@cache
def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # a module put there by hand, without a spec
        return True


class _Finder:
    """Finds nothing itself: it sees to it that what is found is followed by the function in `_THEN`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _THEN:
            return None
        others = [finder for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None:
            _follow(spec.loader, _THEN[name])
        return spec


def _follow(loader: Any, then: Then) -> None:
    load = getattr(loader, "exec_module", None)
    if load is None:
        return

    def exec_module(module: ModuleType) -> None:
        load(module)
        with suppress(Exception):  # an import never fails for being watched; the next `when_loaded` tries again
            then(module)

    with suppress(AttributeError, TypeError):  # a loader that takes no attributes: likewise
        loader.exec_module = exec_module


_finder: Any = _Finder()
