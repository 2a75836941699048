"""Agents that are plain Python: a function of the input, or an object with `reset` and `invoke`.

A function, async function or callable object is called with the turn's input as its one positional argument: text as
str, a mapping as a dict of its own. What it returns is the final output: anything, or an AgentRun that reports the
whole turn. An object with `invoke` is called as `invoke(case)`, where `case` is `{id, input, turn, fixture}`; its
`reset(fixture)`, if it has one, is called once before the first turn, and what that raises makes the trial invalid.

All turns of a trial call the same object. What a known framework runs inside is in the trace (`hidden`).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from seatrial.agents.hidden import captured, listen
from seatrial.agents.reported import answer_of
from seatrial.agents.taking import check_taken
from seatrial.core.agent_run import AgentRun
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable
from seatrial.environment.failure import fixture_part
from seatrial.environment.tools import is_async, tool_name
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["FunctionAgent"]


class FunctionAgent:
    """A function, or an object with `invoke`, under test."""

    kind = "function"
    observes = frozenset({Observable.OUTPUT})

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """UsageError when the target cannot be called with the input, or the spec says how to change it."""
        check_taken(spec or AgentSpec())
        self._target = target
        self._invoke: Callable[..., Any] | None = getattr(target, "invoke", None)
        self._check(self._invoke or target)
        self._async = is_async(self._invoke or target)
        self.blocking = hasattr(target, "reset")

    def _check(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise UsageError(f"an agent of kind function is a function or has invoke(case), not {function!r}")
        name = tool_name(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(f"{name} is a generator function; an agent returns its finished answer")
        try:
            inspect.signature(function).bind(None)
        except TypeError:
            shown = f"{name}{inspect.signature(function)}"
            raise UsageError(f"{shown} cannot be called with one positional argument, the input") from None
        except ValueError:  # some builtins tell nothing of their signature
            return

    def open(self, trial: TrialEnvironment) -> FunctionSession:
        """The session of one trial, after `reset`. Raises FixtureError when `reset` raises."""
        if trial.capture_hidden:
            listen()
        trial.recorder.observe(*self.observes)
        if self._invoke is None:
            return FunctionSession(self._target, trial, not self._async, _own)
        resetting = self._reset(trial)
        return FunctionSession(self._invoke, trial, not self._async and resetting is None, _as_case, resetting)

    def _reset(self, trial: TrialEnvironment) -> Awaitable[Any] | None:
        reset = getattr(self._target, "reset", None)
        if reset is None:
            return None
        with fixture_part("reset"):
            result = reset(trial.fixture_name)
            if inspect.isawaitable(result):
                return result
        return None


class FunctionSession:
    """One trial of a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        trial: TrialEnvironment,
        blocking: bool,
        argument: Callable[[TurnInput], Any],
        resetting: Awaitable[Any] | None = None,
    ) -> None:
        """`argument` makes of a turn what the function is called with."""
        self.blocking = blocking
        self._function = function
        self._trial = trial
        self._argument = argument
        self._resetting = resetting

    def invoke(self, turn: TurnInput) -> Answer | Awaitable[Answer]:
        """Answer one turn; an awaitable when the function gives one."""
        if self._resetting is not None:
            return self._after_reset(turn)
        if not self.blocking:
            return self._awaited(turn)
        with captured(self._trial):
            result = self._function(self._argument(turn))
        return self._finished(result) if inspect.isawaitable(result) else self._answer(result)

    async def _after_reset(self, turn: TurnInput) -> Answer:
        resetting, self._resetting = self._resetting, None
        with fixture_part("reset"):
            await resetting  # type: ignore[misc]  # checked by the caller
        answer = self.invoke(turn)
        return await answer if inspect.isawaitable(answer) else answer

    async def _awaited(self, turn: TurnInput) -> Answer:
        with captured(self._trial):
            result = self._function(self._argument(turn))
            result = await result if inspect.isawaitable(result) else result
        return self._answer(result)

    async def _finished(self, result: Awaitable[Any]) -> Answer:
        with captured(self._trial):
            finished = await result
        return self._answer(finished)

    def _answer(self, result: Any) -> Answer:
        if isinstance(result, (GeneratorType, AsyncGeneratorType)):
            raise TypeError("the agent returned a generator; return the finished answer, or an AgentRun")
        return answer_of(result, self._trial.recorder) if isinstance(result, AgentRun) else Answer(result)

    def close(self) -> None:
        """Let go of a reset that was never waited for."""
        if self._resetting is not None and inspect.iscoroutine(self._resetting):
            self._resetting.close()


def _own(turn: TurnInput) -> Any:
    """The input: what the agent does to it reaches no other trial."""
    given = turn.input
    return given if type(given) is str else copy.deepcopy(given)


def _as_case(turn: TurnInput) -> dict[str, Any]:
    return {"id": turn.case_id, "input": _own(turn), "turn": turn.number, "fixture": turn.fixture}
