"""What the situations have in common: one agent with its lines and tools, and how a run ends when a call goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.core.trace import StopReason
from seatrial.testing.conformance.expected import AGENT, Call, Expected, ModelCalled, Said
from seatrial.testing.conformance.script import AgentScript, Ask, Line, Script, Tool

__all__ = ["ORDER", "after_one_call", "asks", "every_trial", "one_agent"]

ORDER = {"order_id": "O-1"}


def one_agent(*lines: Line, tools: tuple[Callable[..., Any], ...] = (), streaming: bool = False) -> Script:
    """A script of alice alone."""
    alice = AgentScript(AGENT, lines, tools=tuple(Tool(function) for function in tools))
    return Script((alice,), streaming=streaming)


def asks(*calls: Ask, text: str = "") -> Line:
    """A reply that asks for calls."""
    return Line(text=text, calls=calls)


def every_trial(expected: Expected) -> Callable[[int], Expected]:
    """The same in each trial."""
    return lambda _: expected


def after_one_call(call: Call, answer: str, *, goes_on: bool, error: str = "", **more: Any) -> Expected:
    """One call, then the answer; or, where that call ends the run, its error in place of the answer."""
    if goes_on:
        models = (ModelCalled(), ModelCalled())
        return Expected(outputs=(answer,), model_calls=models, tool_calls=(call,), said=(Said(answer),), **more)
    return Expected(stop=StopReason.AGENT_ERROR, error=error, model_calls=(ModelCalled(),), tool_calls=(call,), **more)
