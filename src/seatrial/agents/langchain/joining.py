"""Joining LangChain without loading it: told when it is loaded, asked when it runs something.

An agent may import LangChain only inside its first call. So this waits (`on_load`) for the one module where LangChain
keeps its hooks, which it loads before anything runs, and for LangSmith's settings.
"""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from seatrial.agents.langchain.asking import let_tools_ask
from seatrial.agents.langchain.recording import recording
from seatrial.agents.on_load import when_loaded

__all__ = ["listen", "untraced"]

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
