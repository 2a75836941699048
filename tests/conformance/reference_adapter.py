"""A small honest adapter, for a framework that does no more than play a script: what broken adapters are made from.

Each thing that an adapter can get wrong is a method of its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.core.ports import Answer, TurnInput
from seatrial.core.trace import CallState, Observable, StopReason, Usage
from seatrial.environment.approvals import ApprovalAnswer
from seatrial.environment.trial import TrialEnvironment
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, Tool, player_of

SEEN = frozenset(
    {
        Observable.OUTPUT,
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
        Observable.APPROVALS,
    }
)


class Waits(Exception):
    """Nobody answered a request for approval."""


@dataclass
class Call:
    """One call that a model asked for."""

    ask: Ask
    agent: AgentScript
    step: int
    """Event number of the model call."""
    place: int
    """Among the calls of one reply, from 0."""
    arguments: Any
    result: Any = None
    number: int = 0


class ReferenceSession:
    """One trial."""

    blocking = False

    def __init__(self, adapter: ReferenceAdapter, script: Script, trial: TrialEnvironment) -> None:
        self.adapter = adapter
        self.script = script
        self.trial = trial
        self.heard: list[str] = []
        self.acting = script.agents[0].name

    @property
    def recorder(self) -> Any:
        return self.trial.recorder

    async def invoke(self, turn: TurnInput) -> Answer:
        self.heard.append(turn.message)
        try:
            return Answer(await self.run(self.acting, self.heard))
        except Waits:
            return Answer(None, stop_reason=StopReason.WAITING_APPROVAL)

    def close(self) -> None:
        pass

    async def run(self, name: str, heard: Sequence[str]) -> str:
        agent = self.script.agent(name)
        while True:
            line, number = self.reply(agent, heard)
            if line.handoff is not None:
                agent = self.hand_over(agent, line, number)
            elif not line.calls:
                return line.said(heard)
            await self.call_all([self.asked(ask, agent, number, place) for place, ask in enumerate(line.calls)])

    # --- models ---

    def reply(self, agent: AgentScript, heard: Sequence[str]) -> tuple[Line, int]:
        number = self.recorder.begin_model_call(agent.model, agent=agent.name)
        line = player_of(self.trial, self.script).line(agent.name)
        if line.error is not None:
            self.recorder.end_model_call(number, error=line.error)
            raise line.error
        self.recorder.end_model_call(number, usage=self.usage(line.usage))
        text = line.said(heard)
        if text:
            self.recorder.message("assistant", text, agent=agent.name)
        return line, number

    def usage(self, reported: Usage | None) -> Usage | None:
        """What the provider reported: of a streamed reply, with every piece what it has come to."""
        if not self.script.streaming or reported is None:
            return reported
        return self.streamed([Usage(input=reported.input, output=1), reported])

    def streamed(self, pieces: Sequence[Usage]) -> Usage:
        return pieces[-1]

    # --- tools ---

    def asked(self, ask: Ask, agent: AgentScript, step: int, place: int) -> Call:
        return Call(ask, agent, step, place, ask.arguments)

    async def call_all(self, calls: Sequence[Call]) -> None:
        await asyncio.gather(*(self.call(call) for call in calls))

    async def call(self, call: Call) -> None:
        if call.ask.name in call.agent.nested:
            await self.call_agent(call)
            return
        tool = {tool.name: tool for tool in call.agent.tools}.get(call.ask.name)
        if tool is None:
            self.reject(call, CallState.UNKNOWN_TOOL, f"no tool named {call.ask.name}")
        elif not fits(tool, call.arguments):
            self.reject(call, CallState.INVALID_ARGUMENTS, f"{call.arguments!r} does not fit")
        elif not tool.needs_approval or self.allowed(call):
            await self.execute(call, tool)

    def reject(self, call: Call, state: CallState, why: str) -> None:
        self.begin(call)
        self.recorder.end_tool_call(call.number, state=state, error=why, told=why)

    async def execute(self, call: Call, tool: Tool) -> None:
        self.begin(call)
        try:
            call.result = await self.body(call, tool)
        except Exception as error:
            self.recorder.end_tool_call(call.number, error=error, told=f"Error: {error}")
        else:
            self.end(call)

    def begin(self, call: Call) -> None:
        call.number = self.recorder.begin_tool_call(
            call.ask.name,
            call.arguments,
            call_id=self.call_id(call),
            agent=call.agent.name,
            asked=call.ask.arguments,
            step=self.step(call),
            stand_in=self.trial.has_stand_in(call.ask.name),
        )

    def call_id(self, call: Call) -> str | None:
        return call.ask.call_id

    def step(self, call: Call) -> int | None:
        return call.step

    def end(self, call: Call) -> None:
        self.recorder.end_tool_call(call.number, result=call.result)

    async def body(self, call: Call, tool: Tool) -> Any:
        own = in_thread_if_blocking(tool.function)
        return await self.trial.run_tool(tool.name, call.arguments, own, number=call.number)

    async def call_agent(self, call: Call) -> None:
        self.begin(call)
        call.result = await self.run(call.ask.name, list(call.arguments.values()))
        self.end(call)

    # --- approvals ---

    def allowed(self, call: Call) -> bool:
        answer = self.trial.approve(call.ask.name, call.arguments, call_id=call.ask.call_id, agent=call.agent.name)
        if answer.allowed:
            call.arguments = self.approved(call, answer)
            return True
        self.refuse(call, answer)
        if answer.decision == "unanswered":
            raise Waits
        return False

    def approved(self, call: Call, answer: ApprovalAnswer) -> Any:
        return answer.arguments

    def refuse(self, call: Call, answer: ApprovalAnswer) -> None:
        self.reject(call, CallState.REFUSED, f"approval {answer.decision}")

    # --- hand-offs ---

    def hand_over(self, agent: AgentScript, line: Line, step: int) -> AgentScript:
        target = str(line.handoff)
        completed = target in agent.handoffs
        self.record_handoff(agent, line, step, completed=completed)
        if not completed:
            return agent
        self.acting = target
        return self.script.agent(target)

    def record_handoff(self, agent: AgentScript, line: Line, step: int, *, completed: bool) -> None:
        target, context = str(line.handoff), self.context(line)
        self.recorder.handoff(agent.name, target, reason=line.reason, context=context, completed=completed, step=step)

    def context(self, line: Line) -> Mapping[str, Any] | None:
        return line.context


class ReferenceAdapter:
    """What a script's agents do, as it is."""

    kind = "reference"
    blocking = False
    observes = SEEN
    session: type[ReferenceSession] = ReferenceSession

    def __init__(self, target: Any, spec: Any = None) -> None:
        self.script: Script = target
        self.heard: list[str] = []
        """Of a broken one, that keeps it here."""
        self.latest: TrialEnvironment | None = None

    def open(self, trial: TrialEnvironment) -> ReferenceSession:
        trial.recorder.observe(*self.observes)
        self.latest = trial
        return self.session(self, self.script, trial)


@dataclass(frozen=True)
class ReferenceFramework:
    """The script is the agent."""

    adapter: Any = ReferenceAdapter
    kind: str = "reference"
    own_call_ids: bool = False
    absent: Mapping[str, str] = field(default_factory=dict)

    def build(self, script: Script) -> Any:
        return script


def fits(tool: Tool, arguments: Any) -> bool:
    if not isinstance(arguments, Mapping):
        return False
    try:
        inspect.signature(tool.function).bind(**arguments)
    except TypeError:
        return False
    return True


def in_thread_if_blocking(function: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return function

    async def own(**arguments: Any) -> Any:
        return await asyncio.to_thread(function, **arguments)

    return own
