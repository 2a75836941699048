"""Joining Google ADK without loading it: told when it is loaded, asked when it runs something.

Three functions of the framework ask here, by context variable, for the recorder: the one that finds the model of a
step, the one that takes a call through its callbacks, and the one that runs a tool's body. All agents go through them,
those within workflows and agent tools too, in `Runner.run`'s own thread as well. Outside a trial they do what they
always did. The framework's plugins see less: they cannot stand around a body without passing over the agent's own
callbacks. It does not load the framework: where the function does so itself, what runs from then on is recorded.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from seatrial.agents.google_adk.recording import recording
from seatrial.agents.on_load import when_loaded

__all__ = ["is_heard", "listen"]

_joined: set[str] = set()
"""Names of the functions that ask."""


def listen() -> None:
    """The framework asks `recording` from now on, or from when it is loaded."""
    for name, join in _places().items():
        when_loaded(name, join)


def is_heard() -> bool:
    """Load the framework; whether it asks in every place. Another version may have other places."""
    with suppress(ImportError):
        for name in _places():
            importlib.import_module(name)
    listen()
    return len(_joined) == len(_places())


def _places() -> dict[str, Callable[[ModuleType], None]]:
    return {
        "google.adk.flows.llm_flows.base_llm_flow": _join_models,
        "google.adk.flows.llm_flows.tools._batch_executor": _join_calls,
        "google.adk.flows.llm_flows.tools._caller": _join_bodies,
    }


def _join_models(module: ModuleType) -> None:
    _replace(module.BaseLlmFlow, "_get_llm", _model)


def _join_calls(module: ModuleType) -> None:
    _replace(module, "_execute_single_prepared_call_async", _call)


def _join_bodies(module: ModuleType) -> None:
    _replace(module, "_call_tool_async", _body)


def _replace(owner: Any, name: str, asking: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return
    _joined.add(name)
    if not hasattr(original, "_asks_recording"):
        replaced = functools.wraps(original)(asking(original))
        replaced._asks_recording = True  # type: ignore[attr-defined]
        setattr(owner, name, replaced)


def _model(find: Callable[..., Any]) -> Callable[..., Any]:
    async def watched(flow: Any, invocation_context: Any) -> Any:
        model, recorder = await find(flow, invocation_context), recording.here()
        if recorder is None:
            return model
        from seatrial.agents.google_adk.watching import WatchedModel

        return WatchedModel.of(model, recorder, invocation_context)

    return watched


def _call(execute: Callable[..., Any]) -> Callable[..., Any]:
    async def watched(invocation_context: Any, prepared_call: Any, agent: Any) -> Any:
        recorder = recording.here()
        if recorder is None:
            return await execute(invocation_context, prepared_call, agent)
        return await recorder.take_through(
            prepared_call, invocation_context, lambda: execute(invocation_context, prepared_call, agent)
        )

    return watched


def _body(run: Callable[..., Any]) -> Callable[..., Any]:
    async def watched(tool: Any, args: dict[str, Any], tool_context: Any) -> Any:
        recorder = recording.here()
        if recorder is None:
            return await run(tool, args, tool_context)
        from seatrial.agents.google_adk.watching import run_watched

        return await run_watched(recorder, run, tool, args, tool_context)

    return watched
