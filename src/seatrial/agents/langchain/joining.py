"""Joining LangChain without loading it: told when it is loaded, asked when it runs something.

An agent may import LangChain only inside its first call. So this waits (`on_load`) for the one module where LangChain
keeps its hooks, which it loads before anything runs, and for LangSmith's settings.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from seatrial.agents.langchain.asking import let_tools_ask
from seatrial.agents.langchain.recording import recording
from seatrial.agents.on_load import when_loaded

__all__ = ["hush", "listen", "unhush", "untraced"]

_HOOKS, _TRACING = "langchain_core.tracers.context", "langsmith.run_trees"
_TOOLS = "langchain_core.tools.base"
_lock = threading.RLock()


def listen() -> None:
    """LangChain asks `recording`, and its tools the trial, from now on, or from when it is loaded."""
    when_loaded(_HOOKS, _join)
    when_loaded(_TOOLS, let_tools_ask)
    if _TRACING not in sys.modules:
        when_loaded(_TRACING, _silence)


@dataclass
class _State:
    """What holds for this process."""

    joined: ModuleType | None = None
    silenced: ModuleType | None = None


_state = _State()
_early: set[object] = set()
"""Who began before LangSmith was loaded, and lasts still: adding and discarding are one step each, for any thread."""


def _join(module: ModuleType) -> None:
    with _lock:
        if module is not _state.joined:
            _state.joined = module
            module.register_configure_hook(recording, inheritable=True)


# --- LangSmith ----------------------------------------------------------------------------------------------------


@contextmanager
def untraced() -> Iterator[None]:
    """LangSmith sends nothing from in here, whatever the environment says, also when it is loaded only in here."""
    who = object()
    quiet = hush(who)
    try:
        yield
    finally:
        unhush(who, quiet)


def hush(who: object) -> AbstractContextManager[Any] | None:
    """`untraced` begins, until `unhush` is called with the same, and with what this gives."""
    if _TRACING not in sys.modules:
        # a context variable of a module that does not exist yet cannot be set: what is loaded meanwhile is off for all
        _early.add(who)
        return None
    from langsmith import tracing_context

    quiet: AbstractContextManager[Any] = tracing_context(enabled=False)
    quiet.__enter__()
    return quiet


def unhush(who: object, quiet: AbstractContextManager[Any] | None) -> None:
    """`untraced` ends."""
    if quiet is not None:
        quiet.__exit__(None, None, None)
        return
    _early.discard(who)
    if _state.silenced is not None:
        _let_speak()


def _silence(module: ModuleType) -> None:
    with _lock:
        if _early:
            module.configure(enabled=False)
            _state.silenced = module
    _let_speak()  # where the last of them ended meanwhile, and saw nothing silenced yet


def _let_speak() -> None:
    """Once none is left of those that began before LangSmith was loaded."""
    with _lock:
        if not _early and _state.silenced is not None:
            _state.silenced.configure(enabled=None)
            _state.silenced = None
