"""Holds model calls back where the project limits their rate, in async code without holding up the loop.

LangChain awaits an async handler before an async model call; in sync code it runs it only after all sync ones. So the
recorder, which is a sync handler, waits by itself where no loop runs in its thread, and leaves the rest to this one.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from seatrial.agents.langchain.reading import asked_model
from seatrial.agents.langchain.recording import recording
from seatrial.environment.pace import Pace

__all__ = ["ModelPacing"]


class _Pacing:
    """What LangChain asks, at the start of every run, for what holds back the model calls of the run's context."""

    def get(self) -> ModelPacing | None:
        """That of this context's recorder, where the project limits a model's rate."""
        recorder = recording.get()
        return recorder.pacing if recorder is not None and len(recorder.handlers) > 1 else None


register_configure_hook(cast(Any, _Pacing()), inheritable=True)  # of the ContextVar it takes, it calls `get` alone


class ModelPacing(AsyncCallbackHandler):
    """Waits for the turn of every model call of one trial, once."""

    run_inline = True
    raise_error = True

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._waited: set[UUID] = set()

    def wait(self, run_id: UUID, model: str | None) -> None:
        """Wait here, unless a loop runs in this thread: then the handler waits."""
        if not _in_event_loop():
            self._waited.add(run_id)
            self._pace.wait("model", model)

    async def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        await self._ready(run_id, kwargs)

    async def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
        await self._ready(run_id, kwargs)

    async def _ready(self, run_id: UUID, kwargs: dict[str, Any]) -> None:
        if run_id not in self._waited:
            self._waited.add(run_id)
            model = asked_model(kwargs.get("metadata") or {}, kwargs.get("invocation_params") or {})
            await self._pace.ready("model", model)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
