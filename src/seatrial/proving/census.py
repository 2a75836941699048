"""Everything that trials of one process could share, as far as it can be seen: for `seatrial isolate` to name suspects.

Unlike the look around every trial (`environment.surroundings`) this one is thorough and takes its time: module globals
of the project's own modules with all they hold, files of the project at any depth.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from seatrial.core.encoding import digest, shortened, to_json
from seatrial.environment.contents import content, differences
from seatrial.verdict.isolation import Change

__all__ = ["NOT_PROJECT", "Census", "census", "changes"]

Census = Mapping[tuple[str, str], Any]
"""Content by kind and name."""

NOT_PROJECT = frozenset({"runs", ".seatrial", ".git", ".hg", ".venv", "venv", "node_modules", ".tox", ".nox"})
"""Folders of a project that hold no part of it."""
_MOST_FILES = 20_000
_TOLD = 3
_ORDER = ("global", "chance", "environment", "cwd", "file", "thread", "module")


def census(root: Path) -> Census:
    """What there is now."""
    found: dict[tuple[str, str], Any] = {("cwd", "the working folder"): str(Path.cwd())}
    for name, value in os.environ.items():
        found["environment", name] = hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
    for number, thread in enumerate(_threads()):
        found["thread", f"{thread} ({number})"] = True
    for folder in _folders(root.resolve()):
        found |= {("file", name): stamp for name, stamp in islice(_files(folder), _MOST_FILES)}
    return found | dict(_chance()) | dict(_globals())


def _threads() -> list[str]:
    names = (thread.name for thread in threading.enumerate())
    return sorted(name for name in names if not name.startswith(("seatrial-", "asyncio_")))


def _folders(root: Path) -> tuple[Path, ...]:
    """The project's, and the working folder where that lies elsewhere."""
    here = Path.cwd()
    return (root,) if here.is_relative_to(root) else (root, here)


def _files(folder: Path) -> Iterator[tuple[str, Any]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_apart(name))
        for name in sorted(names):
            path = Path(parent, name)
            try:
                found = path.lstat()
            except OSError:
                continue
            yield path.relative_to(folder).as_posix(), [found.st_mtime_ns, found.st_size]


def _is_apart(folder: str) -> bool:
    """Whether a folder belongs to tools (caches, version control, runs), not to what trials share."""
    return folder in NOT_PROJECT or folder == "__pycache__" or folder.startswith(".")


def _chance() -> Iterator[tuple[tuple[str, str], Any]]:
    """The generators that everybody shares."""
    yield ("chance", "the generator of the module random"), digest(to_json(random.getstate()))
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        yield ("chance", "the generator of numpy.random"), digest(to_json(numpy.get_state()))


def _globals() -> Iterator[tuple[tuple[str, str], Any]]:
    """What the project's modules hold; an object with several names under the name in its own module."""
    read: set[int] = set()
    for module in reversed([module for module in list(sys.modules.values()) if _is_project(module)]):
        shown = _module_name(module)
        yield ("module", shown), True
        for name, value in list(vars(module).items()):
            if not _holds_state(name, value, module) or id(value) in read:
                continue
            if not isinstance(value, (bool, int, float, str, bytes, type(None))):
                read.add(id(value))
            yield ("global", f"{shown}:{name}"), content(value)


_PATHS = sysconfig.get_paths()
_INSTALLED = (_PATHS["stdlib"], _PATHS["platstdlib"], _PATHS["purelib"], _PATHS["platlib"])
_ELSEWHERE = tuple(os.path.realpath(folder) + os.sep for folder in (*_INSTALLED, str(Path(__file__).parents[1])))
"""Folders of Python, of installed packages and of Seatrial."""


def _is_project(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str) or module.__name__ == "__main__":
        return False
    installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return not installed and not os.path.realpath(file).startswith(_ELSEWHERE)


def _module_name(module: ModuleType) -> str:
    if module.__name__.startswith("seatrial_fixture_"):
        return f"fixtures/{Path(str(module.__file__)).name}"
    return module.__name__


def _holds_state(name: str, value: Any, module: ModuleType) -> bool:
    """Whether a module's global may hold state of its own: no module, no class or function from elsewhere."""
    if (name.startswith("__") and name.endswith("__")) or isinstance(value, ModuleType):
        return False
    return not callable(value) or getattr(value, "__module__", module.__name__) == module.__name__


# --- comparing -------------------------------------------------------------------------------------------------------


def changes(before: Census, after: Census) -> tuple[Change, ...]:
    """What is otherwise, likely suspects first."""
    imported = {name for kind, name in after.keys() - before.keys() if kind == "module"}
    found = [
        _change(key, before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key) and not _came_with(key, imported)
    ]
    return tuple(sorted(found, key=lambda change: (_ORDER.index(change.kind), change.what)))


def _came_with(key: tuple[str, str], imported: set[str]) -> bool:
    """Globals of a module that was not there before did not change; the import itself is told."""
    return key[0] == "global" and key[1].rpartition(":")[0] in imported


def _change(key: tuple[str, str], before: Any, after: Any) -> Change:
    kind, name = key
    if kind == "global":
        return Change(kind, name, "; ".join(islice(differences(before, after), _TOLD)))
    if kind == "thread":
        return Change(kind, re.sub(r" \(\d+\)$", "", name), "started" if after else "ended")
    if kind == "module":
        return Change(kind, name, "imported" if after else "unloaded")
    happened = "new" if before is None else ("gone" if after is None else "changed")
    if kind == "cwd":
        happened = f"changed to {shortened(str(after), 200)}"
    return Change(kind, name, happened)
