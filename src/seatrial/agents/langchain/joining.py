"""Joining LangChain without loading it: told when it is loaded, asked when it runs something.

An agent may import LangChain only inside its first call. So a finder on `sys.meta_path` waits for the one module where
LangChain keeps its hooks, which it loads before anything runs, and for LangSmith's settings. It looks at names, leaves
finding and loading to the others, and is not there at all where neither is installed.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["listen", "recording", "untraced"]

_HOOKS, _TRACING = "langchain_core.tracers.context", "langsmith.run_trees"
_lock = threading.RLock()


class _Recording:
    """What LangChain asks, at the start of every run, for the recorder of the run's context.

    It takes the place of a ContextVar, of which LangChain calls `get`: the recorder itself cannot exist before
    LangChain is loaded, so the context holds a function that gives it.
    """

    def __init__(self) -> None:
        self._give: ContextVar[Callable[[], Any] | None] = ContextVar("seatrial_langchain_recorder", default=None)

    def get(self) -> Any:
        """The recorder of this context, or None."""
        give = self._give.get()
        return None if give is None else give()

    def tell(self, give: Callable[[], Any] | None) -> Callable[[], Any] | None:
        """Runs that start from now on in this context are told to `give()`; gives what they were told before."""
        outer = self._give.get()
        self._give.set(give)
        return outer

    @contextmanager
    def by(self, give: Callable[[], Any]) -> Iterator[None]:
        """Runs that start in here, in tasks and threads that take this context too, are told to `give()`."""
        outer = self.tell(give)
        try:
            yield
        finally:
            self.tell(outer)


recording = _Recording()


def listen() -> None:
    """LangChain asks `recording` from now on, or from when it is loaded."""
    loaded = sys.modules.get(_HOOKS)
    if loaded is not None:
        if loaded is not _state.joined:
            _join(importlib.import_module(_HOOKS))  # which waits when another thread is still loading it
    elif _finder not in sys.meta_path and _is_installed():
        sys.meta_path.insert(0, _finder)  # a list that other threads may be reading: nothing is ever removed


@cache
def _is_installed() -> bool:
    try:
        return any(find_spec(name.partition(".")[0]) is not None for name in (_HOOKS, _TRACING))
    except (ImportError, ValueError):  # a module put there by hand, without a spec
        return True


@dataclass
class _State:
    """What holds for this process."""

    joined: ModuleType | None = None
    early: int = 0
    """Contexts that began before LangSmith was loaded and last still."""
    silenced: ModuleType | None = None


_state = _State()


def _join(module: ModuleType) -> None:
    with _lock:
        if module is not _state.joined:
            _state.joined = module
            module.register_configure_hook(recording, inheritable=True)


# --- LangSmith ----------------------------------------------------------------------------------------------------


def untraced() -> AbstractContextManager[Any]:
    """LangSmith sends nothing from in here, whatever the environment says, also when it is loaded only in here."""
    if _TRACING not in sys.modules:
        return _UNTRACED_ONCE_LOADED
    from langsmith import tracing_context

    return tracing_context(enabled=False)


class _UntracedOnceLoaded:
    """A context variable of a module that does not exist yet cannot be set: what is loaded in here is off for all."""

    def __enter__(self) -> None:
        with _lock:
            _state.early += 1

    def __exit__(self, *_: object) -> None:
        with _lock:
            _state.early -= 1
            if not _state.early and _state.silenced is not None:
                _state.silenced.configure(enabled=None)
                _state.silenced = None


_UNTRACED_ONCE_LOADED = _UntracedOnceLoaded()


def _silence(module: ModuleType) -> None:
    with _lock:
        if _state.early:
            module.configure(enabled=False)
            _state.silenced = module


# --- the finder ---------------------------------------------------------------------------------------------------

_ON_LOAD = {_HOOKS: _join, _TRACING: _silence}


class _Finder:
    """Finds nothing itself: it sees to it that what is found is followed by the function in `_ON_LOAD`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _ON_LOAD:
            return None
        others = [finder for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None:
            _follow(spec.loader, _ON_LOAD[name])
        return spec


def _follow(loader: Any, then: Callable[[ModuleType], None]) -> None:
    load = getattr(loader, "exec_module", None)
    if load is None:
        return

    def exec_module(module: ModuleType) -> None:
        load(module)
        with suppress(Exception):  # an import never fails for being watched; `listen` tries again
            then(module)

    with suppress(AttributeError, TypeError):  # a loader that takes no attributes: likewise
        loader.exec_module = exec_module


_finder: Any = _Finder()
