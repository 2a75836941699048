"""One tool call: its body between its faults, and the event that records it. Sync and async share all but the waiting.

A body that gives an awaitable, though its function does not look async, makes the call one: the caller gets an
awaitable, and the call ends when that does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from seatrial.core.trace import CallState
from seatrial.environment.approvals import ApprovalAnswer, Approvals
from seatrial.environment.callee import is_awaitable
from seatrial.environment.faults import FaultyCall
from seatrial.environment.recorder import Recorder

__all__ = ["RecordedCall", "open_call", "run_blocking", "run_waiting"]

Body = Callable[[], Any]
_OPEN: ContextVar[RecordedCall | None] = ContextVar("seatrial_open_call", default=None)


def open_call() -> RecordedCall | None:
    """The recorded call whose body runs here; None outside any."""
    return _OPEN.get()


def run_blocking(body: Body, faults: FaultyCall | None) -> Any:
    """Run a body in this thread, with its faults. Gives an awaitable where the body does."""
    if faults is None:
        return body()
    _sleep(faults.pause_s(after=False))
    faults.check(after=False)
    result = body()
    if is_awaitable(result):
        return _rest(result, faults)
    _sleep(faults.pause_s(after=True))
    return faults.delivered(result)


async def run_waiting(body: Body, faults: FaultyCall | None) -> Any:
    """Run a body with its faults; waiting blocks nobody else."""
    if faults is None:
        result = body()
        return await result if is_awaitable(result) else result
    await _pause(faults.pause_s(after=False))
    faults.check(after=False)
    return await _rest(body(), faults)


async def _rest(result: Any, faults: FaultyCall) -> Any:
    result = await result if is_awaitable(result) else result
    await _pause(faults.pause_s(after=True))
    return faults.delivered(result)


def _sleep(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


async def _pause(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


@dataclass(slots=True)
class RecordedCall:
    """A tool call on record, open while its body runs (a context manager around the body)."""

    recorder: Recorder
    approvals: Approvals
    name: str
    arguments: Mapping[str, Any]
    agent: str | None = None
    call_id: str | None = None
    stand_in: bool = False
    number: int = 0
    """Event number, once it has begun."""
    answer: ApprovalAnswer | None = None
    """The latest approval that the body asked for."""
    _result: Any = None
    _awaited: bool = False
    _outer: RecordedCall | None = None

    def begin(self) -> RecordedCall:
        """Record that the call begins. Raises StepLimitReached or TrialOver when no call may begin."""
        self.number = self.recorder.begin_tool_call(
            self.name, self.arguments, call_id=self.call_id, agent=self.agent, stand_in=self.stand_in
        )
        return self

    def __enter__(self) -> RecordedCall:
        self._outer = _OPEN.get()
        _OPEN.set(self)
        return self

    def gives(self, result: Any) -> Any:
        """What the caller gets for the body's result."""
        if is_awaitable(result):
            self._awaited = True
            return self._await(result)
        self._result = result
        return result

    async def _await(self, result: Awaitable[Any]) -> Any:
        with self:
            self._result = await result
            self._awaited = False
            return self._result

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        _OPEN.set(self._outer)
        if self._awaited and error is None:
            return
        state = CallState.REFUSED if error is not None and self._stopped() else None
        self.recorder.end_tool_call(self.number, result=self._result, error=error, state=state)

    def _stopped(self) -> bool:
        """Whether its own approval (asked for in its body, or for this name and arguments) did not allow it."""
        if self.answer is not None:
            return not self.answer.allowed
        return self.approvals.stopped(self.name, self.arguments, self.call_id)
