"""What a Python object holds, as JSON data that two moments can be compared by.

Unlike `core.encoding` it looks into plain objects (their attributes), classes (class attributes), functions (mutable
defaults, attributes, what they close over, their `lru_cache`) and random generators: state that leaks from one trial
into the next sits there as often as in a dict. No memory address is in it, and nothing of the object is called but the
iteration of its items.
"""

from __future__ import annotations

import functools
import random
import types
from collections import deque
from collections.abc import Iterator, Mapping, Set
from typing import Any

from seatrial.core.encoding import digest, dumps, shortened, to_json

__all__ = ["content", "differences"]

_DEEPEST = 12
_MOST = 20_000
"""Parts of one object that are looked at; what lies beyond is not compared."""
_SHOWN = 60
_OPAQUE = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, property, classmethod, staticmethod)
_MISSING = object()


def content(value: object) -> Any:
    """What `value` holds: a copy that later changes do not touch. Never raises."""
    return _Reader().read(value, ())


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Where two contents differ, as `path: before -> after`, `path: + after` or `path: - before`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = path if key.startswith("$") else f"{path}.{key}".lstrip(".")
            yield from differences(before.get(key, _MISSING), after.get(key, _MISSING), inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif before is _MISSING or after is _MISSING:
        yield _told(path, f"+ {_shown(after)}" if before is _MISSING else f"- {_shown(before)}")
    elif before != after:
        yield _told(path, f"{_shown(before)} -> {_shown(after)}")


def _told(path: str, change: str) -> str:
    return f"{path}: {change}" if path else change


def _shown(value: Any) -> str:
    return shortened(dumps(value), _SHOWN)


class _Reader:
    """One reading of one object, bounded in depth and size."""

    def __init__(self) -> None:
        self._left = _MOST

    def read(self, value: Any, above: tuple[int, ...]) -> Any:
        self._left -= 1
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return to_json(value)
        if self._left < 0 or len(above) > _DEEPEST or id(value) in above:
            return f"<{type(value).__name__}>"
        try:
            return self._structure(value, (*above, id(value)))
        except Exception as error:  # noqa: BLE001  a hostile __iter__ or __repr__ must not end a trial
            return f"<{type(value).__name__}: {type(error).__name__}>"

    def _structure(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, type):
            return self._members(f"class {value.__qualname__}", vars(value), above)
        if isinstance(value, Mapping):
            return {_key(key): self.read(item, above) for key, item in list(value.items())}
        if isinstance(value, (list, tuple, deque)):
            return [self.read(item, above) for item in list(value)]
        if isinstance(value, Set):
            return {"$set": sorted(dumps(self.read(item, above)) for item in list(value))}
        return self._object(value, above)

    def _object(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, functools._lru_cache_wrapper):
            known = value.cache_info()
            return {"$cache": value.__name__, "entries": known.currsize, "misses": known.misses}
        if isinstance(value, types.FunctionType):
            return self._function(value, above)
        if isinstance(value, random.Random):
            return {"$random": digest(to_json(value.getstate()))[:19]}
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict) and not isinstance(value, _OPAQUE):
            return self._members(type(value).__qualname__, attributes, above)
        return to_json(value)

    def _function(self, function: types.FunctionType, above: tuple[int, ...]) -> Any:
        cells = [_cell(cell) for cell in function.__closure__ or ()]
        held = {
            "defaults": [item for item in function.__defaults__ or () if _mutable(item)],
            "keywords": {name: item for name, item in (function.__kwdefaults__ or {}).items() if _mutable(item)},
            "closure": [item for item in cells if _mutable(item)],
            "attributes": {name: item for name, item in vars(function).items() if name != "__wrapped__"},
        }
        return self._members(f"function {function.__qualname__}", {k: v for k, v in held.items() if v}, above)

    def _members(self, name: str, members: Mapping[str, Any], above: tuple[int, ...]) -> Any:
        data = {key: item for key, item in list(members.items()) if not _is_plumbing(key, item)}
        return {"$": name} | {key: self.read(item, above) for key, item in data.items()}


def _key(key: Any) -> str:
    return key if isinstance(key, str) else dumps(to_json(key))


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _mutable(value: Any) -> bool:
    """Whether it can hold state: not a number, a text, or code without any."""
    return not (value is None or isinstance(value, (bool, int, float, str, bytes, type, *_OPAQUE)))


def _is_plumbing(name: str, value: Any) -> bool:
    return (name.startswith("__") and name.endswith("__")) or isinstance(value, (*_OPAQUE, types.MemberDescriptorType))
