"""The frameworks that a module offers to the kit."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from seatrial.errors import UsageError
from seatrial.registry import load_object
from seatrial.testing.conformance.script import Framework

__all__ = ["frameworks_at"]


def frameworks_at(place: str) -> tuple[Framework, ...]:
    """What stands at `module:object` (one, several or a class of one), or what a module offers: its `FRAMEWORKS` or
    `FRAMEWORK`, else each of its own classes that is one. UsageError when there is none."""
    offered = _listed(load_object(place)) if ":" in place else _offered(_module(place))
    found: list[Any] = [one() if inspect.isclass(one) else one for one in offered]
    for one in found:
        if not all(hasattr(one, name) for name in ("kind", "absent", "own_call_ids", "build")):
            raise UsageError(f"{place}: a {type(one).__name__} is no Framework (kind, absent, own_call_ids, build)")
    if not found:
        raise UsageError(f"{place}: no framework there; let FRAMEWORKS name them")
    return tuple(found)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name}: {error}") from error


def _offered(module: ModuleType) -> list[Any]:
    named = getattr(module, "FRAMEWORKS", getattr(module, "FRAMEWORK", None))
    if named is not None:
        return _listed(named)
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    return [value for value in own if inspect.isclass(value) and hasattr(value, "kind") and hasattr(value, "build")]


def _listed(named: Any) -> list[Any]:
    return list(named) if isinstance(named, (list, tuple)) else [named]
