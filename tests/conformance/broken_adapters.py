"""Adapters that get one thing wrong, each with the situations that must find it, and no others."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from conformance.reference_adapter import SEEN, Call, ReferenceAdapter, ReferenceSession, in_thread_if_blocking
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.trace import CallState, Observable, Usage
from seatrial.environment.recorder import StepLimitReached
from seatrial.testing.conformance import SITUATIONS, player_of

PARALLEL = frozenset({"parallel_calls", "parallel_blocking_calls"})
APPROVALS = frozenset({"approval_granted", "approval_denied", "approval_edited", "approval_unanswered"})
ALL = frozenset(SITUATIONS)


class DropsTheSecondParallelCall(ReferenceSession):
    caught_by = PARALLEL

    async def execute(self, call: Call, tool: Any) -> None:
        if call.place == 0:
            await super().execute(call, tool)
        else:
            await self.body(call, tool)


class PairsResultsByOrder(ReferenceSession):
    """The first result that comes in is taken for the first call's."""

    caught_by = PARALLEL

    async def call_all(self, calls: Sequence[Call]) -> None:
        self.open_calls = list(calls)
        await super().call_all(calls)

    def end(self, call: Call) -> None:
        if call not in self.open_calls:
            super().end(call)
            return
        first = self.open_calls.pop(0)
        self.recorder.end_tool_call(first.number, result=call.result)


class MixesCallIds(ReferenceSession):
    caught_by = PARALLEL

    async def call_all(self, calls: Sequence[Call]) -> None:
        self.ids = [call.ask.call_id for call in reversed(calls)]
        await super().call_all(calls)

    def call_id(self, call: Call) -> str | None:
        return self.ids[call.place] if len(self.ids) > 1 else call.ask.call_id


class NumbersStepsByTool(ReferenceSession):
    """Every call is a step of its own."""

    caught_by = PARALLEL

    def step(self, call: Call) -> int | None:
        return call.step + call.place


class RunsParallelCallsOneByOne(ReferenceSession):
    caught_by = PARALLEL

    async def call_all(self, calls: Sequence[Call]) -> None:
        for call in reversed(calls):
            await self.call(call)


class RecordsCallsOnceTheyAreOver(ReferenceSession):
    caught_by = PARALLEL | {"nested_agent", "timeout", "injected_fault"}

    def begin(self, call: Call) -> None:
        call.number = 0

    def end(self, call: Call) -> None:
        super().begin(call)
        super().end(call)

    async def execute(self, call: Call, tool: Any) -> None:
        try:
            call.result = await self.body(call, tool)
        except Exception as error:
            super().begin(call)
            self.recorder.end_tool_call(call.number, error=error, told=str(error))
        else:
            self.end(call)

    def reject(self, call: Call, state: CallState, why: str) -> None:
        super().begin(call)
        self.recorder.end_tool_call(call.number, state=state, error=why, told=why)


class RecordsAHandoffAsAToolCall(ReferenceSession):
    caught_by = frozenset({"handoff", "refused_handoff"})

    def record_handoff(self, agent: Any, line: Any, step: int, *, completed: bool) -> None:
        number = self.recorder.begin_tool_call(f"ask_{line.handoff}", line.context, agent=agent.name, step=step)
        self.recorder.end_tool_call(number, result="done")


class TakesARefusedHandoffForOneThatHappened(ReferenceSession):
    caught_by = frozenset({"refused_handoff"})

    def record_handoff(self, agent: Any, line: Any, step: int, *, completed: bool) -> None:
        super().record_handoff(agent, line, step, completed=True)


class LosesUsage(ReferenceSession):
    caught_by = ALL - {"model_error"}

    def usage(self, reported: Usage | None) -> Usage | None:
        return None


class LosesCachedTokens(ReferenceSession):
    caught_by = frozenset({"usage"})

    def usage(self, reported: Usage | None) -> Usage | None:
        return None if reported is None else Usage(input=reported.input, output=reported.output)


class TakesUnknownUsageForNone(ReferenceSession):
    """An unknown number of tokens is not free."""

    caught_by = frozenset({"usage"})

    def usage(self, reported: Usage | None) -> Usage | None:
        return super().usage(reported) or Usage(input=0, output=0)


class DoublesUsageOfAStreamedReply(ReferenceSession):
    caught_by = frozenset({"streaming"})

    def streamed(self, pieces: Sequence[Usage]) -> Usage:
        inputs, outputs = [one.input or 0 for one in pieces], [one.output or 0 for one in pieces]
        return Usage(input=sum(inputs), output=sum(outputs))


class SharesTheConversationBetweenTrials(ReferenceSession):
    caught_by = frozenset({"isolation", "twenty_trials"})

    async def invoke(self, turn: TurnInput) -> Answer:
        self.heard = self.adapter.heard
        return await super().invoke(turn)


class LeaksBetweenConcurrentTrials(ReferenceSession):
    """What happens is written down for whichever trial began last."""

    caught_by = frozenset({"twenty_trials"})

    @property
    def recorder(self) -> Any:
        return self.adapter.latest.recorder


class ForgetsEarlierTurns(ReferenceSession):
    caught_by = frozenset({"three_turns", "isolation"})

    async def invoke(self, turn: TurnInput) -> Answer:
        self.heard = []
        return await super().invoke(turn)


class SwallowsThePartialTraceOfACrash(ReferenceSession):
    caught_by = frozenset({"crash", "model_error"})

    async def invoke(self, turn: TurnInput) -> Answer:
        try:
            return await super().invoke(turn)
        except Exception:
            for number in range(2, len(self.recorder.freeze()) + 1):
                self.recorder.withdraw(number)
            raise


class AnswersInPlaceOfACrash(ReferenceSession):
    caught_by = frozenset({"crash", "model_error"})

    async def invoke(self, turn: TurnInput) -> Answer:
        try:
            return await super().invoke(turn)
        except Exception as error:
            return Answer(f"sorry: {error}")


class ReportsARefusedCallAsExecuted(ReferenceSession):
    caught_by = frozenset({"approval_denied", "approval_unanswered"})

    def refuse(self, call: Call, answer: Any) -> None:
        self.begin(call)
        self.recorder.end_tool_call(call.number, result="not allowed")


class TreatsUnansweredAsGranted(ReferenceSession):
    caught_by = frozenset({"approval_unanswered"})

    def allowed(self, call: Call) -> bool:
        answer = self.trial.approve(call.ask.name, call.arguments, call_id=call.ask.call_id, agent=call.agent.name)
        if answer.decision == "unanswered":
            return True
        call.arguments = answer.arguments
        if not answer.allowed:
            self.refuse(call, answer)
        return answer.allowed


class RecordsAnEditedCallWithTheAskedArguments(ReferenceSession):
    caught_by = frozenset({"approval_edited"})

    def begin(self, call: Call) -> None:
        run, call.arguments = call.arguments, call.ask.arguments
        super().begin(call)
        call.arguments = run


class RunsAnEditedCallAsAsked(ReferenceSession):
    caught_by = frozenset({"approval_edited"})

    async def body(self, call: Call, tool: Any) -> Any:
        call.arguments = call.ask.arguments
        return await super().body(call, tool)


class IgnoresTheStepLimit(ReferenceSession):
    caught_by = frozenset({"step_limit"})

    def reply(self, agent: Any, heard: Sequence[str]) -> Any:
        try:
            return super().reply(agent, heard)
        except StepLimitReached:
            self.recorder.limit_reached, self.recorder.step_limit = False, None
            return super().reply(agent, heard)


class TakesAnUnknownToolForAFailedOne(ReferenceSession):
    caught_by = frozenset({"unknown_tool"})

    def reject(self, call: Call, state: CallState, why: str) -> None:
        super().reject(call, CallState.FAILED if state is CallState.UNKNOWN_TOOL else state, why)


class DropsCallsThatDoNotFit(ReferenceSession):
    caught_by = frozenset({"invalid_arguments", "malformed_arguments"})

    def reject(self, call: Call, state: CallState, why: str) -> None:
        if state is not CallState.INVALID_ARGUMENTS:
            super().reject(call, state, why)


class GivesTheCallerANestedAgentsCalls(ReferenceSession):
    caught_by = frozenset({"nested_agent"})

    def begin(self, call: Call) -> None:
        call.agent = self.script.agent(self.acting)
        super().begin(call)


class BypassesTheFixture(ReferenceSession):
    caught_by = frozenset({"stand_in", "injected_fault"})

    async def body(self, call: Call, tool: Any) -> Any:
        return await in_thread_if_blocking(tool.function)(**call.arguments)


class RecordsDefaultsThatNobodyNamed(ReferenceSession):
    caught_by = frozenset({"two_calls", "crash"})

    async def execute(self, call: Call, tool: Any) -> None:
        bound = inspect.signature(tool.function).bind(**call.arguments)
        bound.apply_defaults()
        call.arguments = bound.arguments
        await super().execute(call, tool)


class DoesNotSayWhatTheModelWasTold(ReferenceSession):
    caught_by = frozenset({"unknown_tool", "invalid_arguments", "malformed_arguments", "approval_denied"})

    def reject(self, call: Call, state: CallState, why: str) -> None:
        self.begin(call)
        self.recorder.end_tool_call(call.number, state=state, error=why)


class IgnoresBeingCancelled(ReferenceSession):
    caught_by = frozenset({"timeout"})
    waits_in_vain = True

    async def body(self, call: Call, tool: Any) -> Any:
        running = asyncio.ensure_future(super().body(call, tool))
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        return running.result()


class DeclaresWhatItNeverDelivers(ReferenceSession):
    caught_by = frozenset({"handoff", "refused_handoff"})

    def context(self, line: Any) -> Any:
        return None


class DeliversWhatItDoesNotDeclare(ReferenceSession):
    caught_by = APPROVALS
    observes = SEEN - {Observable.APPROVALS}


HANDOFFS = frozenset({"handoff", "refused_handoff"})


class DeclaresWhatItsFrameworkHasNot(ReferenceSession):
    """Whatever would show that it sees hand-offs or approvals is said to be absent."""

    caught_by = APPROVALS | HANDOFFS
    absent = dict.fromkeys((*APPROVALS, *HANDOFFS), "there is no such thing")


class ClaimsMoreThanItDeclares(ReferenceSession):
    caught_by = ALL

    def __init__(self, adapter: Any, script: Any, trial: Any) -> None:
        super().__init__(adapter, script, trial)
        trial.recorder.observe(Observable.RETRIEVAL)


BROKEN: list[Any] = [
    value
    for value in list(vars().values())
    if isinstance(value, type) and issubclass(value, ReferenceSession) and value is not ReferenceSession
]


def adapter_with(kind_of_session: type[ReferenceSession]) -> type[ReferenceAdapter]:
    """The reference adapter with another session."""
    observes = getattr(kind_of_session, "observes", SEEN)
    return type("Broken", (ReferenceAdapter,), {"session": kind_of_session, "observes": observes})


class SeesAnswersOnly(ReferenceSession):
    """Not broken, but nearly blind: it records nothing and says so."""

    observes = frozenset({Observable.OUTPUT})

    def reply(self, agent: Any, heard: Sequence[str]) -> Any:
        line = player_of(self.trial, self.script).line(agent.name)
        if line.error is not None:
            raise line.error
        return line, 0

    async def execute(self, call: Call, tool: Any) -> None:
        with suppress(ValueError):
            await in_thread_if_blocking(tool.function)(**call.arguments)

    async def call_agent(self, call: Call) -> None:
        await self.run(call.ask.name, list(call.arguments.values()))

    def allowed(self, call: Call) -> bool:
        return True

    def reject(self, call: Call, state: CallState, why: str) -> None:
        pass

    def record_handoff(self, agent: Any, line: Any, step: int, *, completed: bool) -> None:
        pass
