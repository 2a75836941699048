"""Modules of projects: importable while a run of theirs lasts, imported afresh by the next."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["forget_projects", "importable"]


_imported: set[str] = set()
"""Modules that earlier runs imported from their projects."""


@contextmanager
def importable(folder: str) -> Iterator[None]:
    """While this lasts, modules in `folder` can be imported (first)."""
    before, added = set(sys.modules), bool(folder) and folder not in sys.path
    if added:
        sys.path.insert(0, folder)
    try:
        yield
    finally:
        _imported.update(name for name in set(sys.modules) - before if _lies_in(sys.modules[name], folder))
        if added and folder in sys.path:
            sys.path.remove(folder)


def _lies_in(module: Any, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(folder)


def forget_projects() -> None:
    """Let the next run import its project afresh: another project may have modules of the same names, and in a
    notebook the agent may have been edited meanwhile. What the caller imported itself stays."""
    for name in _imported:
        sys.modules.pop(name, None)
    _imported.clear()
    importlib.invalidate_caches()
