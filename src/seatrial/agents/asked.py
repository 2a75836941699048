"""The tool calls that models asked for, and what became of each: for adapters that stand around a tool's body.

Such an adapter sees a body run (`run`). Of every other call it learns from what the model was told: an unknown tool,
arguments that did not fit, a denied approval leave nothing else. So what was asked for is kept here until it is
settled; what is still open when a turn has ended never ran.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.trace import CallState, Observable
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.observed import ObservedCall, observing
from seatrial.environment.recorder import read_arguments
from seatrial.environment.trial import TrialEnvironment

__all__ = ["AskedCall", "AskedCalls"]

Body = Callable[[], Awaitable[Any]]


@dataclass(eq=False)
class AskedCall:
    """One call that a model asked for."""

    name: str
    arguments: Any = None
    """As asked: a mapping, or the text of a model that writes JSON."""
    call_id: str | None = None
    step: int | None = None
    """Event number of the model call."""
    agent: str | None = None
    owner: str | None = None
    """Whose call ids these are: agents that run within another one may use the same ids."""
    offered: bool = True
    """Whether the model was offered a tool of that name."""
    edited: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that an approval put in place of those asked for."""
    rejected: str | None = None
    """Why the tool's schema did not accept the arguments."""
    shows_context: bool = True
    """Whether a hand-off's arguments may hold a context."""
    number: int | None = None
    """Event number, once it is on record."""
    settled: bool = False
    """It stands in the trace for good."""

    @property
    def target(self) -> str | None:
        """Whom the call hands the conversation over to; None when it is a tool call."""
        if not is_handoff_tool(self.name):
            return None
        return asked_handoff(self.name, self.named).target

    @property
    def named(self) -> dict[str, Any]:
        """The arguments as asked, with the edited ones replaced. Empty when they are malformed."""
        asked, malformed = read_arguments(self.arguments)
        return {} if malformed else {**asked, **self.edited}

    def as_run(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The named arguments as the tool gets them.

        Only plain values take the tool's form ("750" into 750): a date or a model stays as it was asked for.
        """
        plain = {name: value for name, value in given.items() if value is None or isinstance(value, (str, int, float))}
        return {name: plain.get(name, value) for name, value in self.named.items()}


class AskedCalls:
    """Every call asked for in one trial."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self._trial = trial
        self._all: list[AskedCall] = []
        self._by_id: dict[tuple[str | None, str], AskedCall] = {}
        self._uses: Counter[str | None] = Counter()

    def ask(self, call: AskedCall) -> AskedCall:
        """A model asked for this call. An id that comes again (fake models repeat them) means the latest call."""
        self._all.append(call)
        self._uses[call.call_id] += 1
        if call.call_id is not None:
            self._by_id[call.owner, call.call_id] = call
        return call

    def by_id(self, call_id: str | None, owner: str | None = None) -> AskedCall | None:
        """The latest call with this id."""
        return None if call_id is None else self._by_id.get((owner, call_id))

    def identify(self, call: AskedCall, call_id: str | None) -> AskedCall:
        """A call that was asked for without an id has got one."""
        call.call_id = call_id
        self._uses[call_id] += 1
        if call_id is not None:
            self._by_id[call.owner, call_id] = call
        return call

    def waiting(self, call_id: str | None) -> AskedCall | None:
        """The open call with this id, whosever it is."""
        return next((call for call in self.open() if call.call_id == call_id), None)

    def open(self) -> Iterator[AskedCall]:
        """Calls that are not settled, in the order in which they were asked for."""
        return iter([call for call in self._all if not call.settled])

    # --- what ran ----------------------------------------------------------------------------------------------------

    async def run(
        self,
        call: AskedCall,
        given: Mapping[str, Any],
        body: Body,
        *,
        waits: tuple[type[BaseException], ...] = (),
        read: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Run a call's body on record, with stand-in and faults applied; gives what the body gave.

        `given` are the arguments as the tool gets them; `read` takes the result out of what the body gave. A body that
        raises one of `waits` will run again from its start (it asked for approval), and has not happened yet. Raises
        what the body, the fault or the stand-in raises.
        """
        call.rejected = None
        if call.target is not None:
            return await self._hand_over(call, body)
        arguments = call.as_run(given)
        number = self._begin(call, arguments)
        observed = ObservedCall(call.name, number, call.call_id, arguments, entered=True, applied=True)

        async def own(**_: Any) -> Any:
            return await body()

        before = observing.get()
        observing.set(observed)
        try:
            result = await self._trial.run_tool(call.name, arguments, own, number=number)
        except waits:
            self._trial.recorder.withdraw(number)
            call.number, call.settled = None, False
            raise
        except BaseException as error:
            self._end_raised(call, number, error)
            raise
        finally:
            observing.set(before)
        self._trial.recorder.end_tool_call(number, result=result if read is None else read(result))
        return result

    def _begin(self, call: AskedCall, arguments: Mapping[str, Any]) -> int:
        recorder = self._trial.recorder
        if call.number is not None:  # it stood there as one that never ran
            recorder.withdraw(call.number)
        call.settled = True
        call.number = recorder.begin_tool_call(
            call.name,
            arguments,
            call_id=call.call_id,
            agent=call.agent,
            asked=call.arguments,
            step=call.step,
            stand_in=self._trial.has_stand_in(call.name),
        )
        if self._uses[call.call_id] > 1:  # the same id again is another call, no other try of the same one
            recorder.amend(call.number, attempt=1)
        return call.number

    def _end_raised(self, call: AskedCall, number: int, error: BaseException) -> None:
        cancelled = isinstance(error, asyncio.CancelledError)
        shown: Any = "cancelled before it ended" if cancelled else error
        state = CallState.REFUSED if self.stopped(call) else CallState.FAILED
        self._trial.recorder.end_tool_call(number, error=shown, state=state)

    def stopped(self, call: AskedCall) -> bool:
        """Whether the latest approval of this very call did not allow it."""
        return self._trial.stopped(call.name, call.arguments, call.call_id)

    async def _hand_over(self, call: AskedCall, body: Body) -> Any:
        """The other agent may run within the body, so the hand-off is on record before it."""
        number = self.hand_over(call)
        try:
            return await body()
        except BaseException:
            self._trial.recorder.settle_handoff(number, completed=False)
            raise

    def hand_over(self, call: AskedCall, *, completed: bool = True) -> int:
        """Put a hand-off on record. Gives its event number."""
        call.settled = True
        asked = asked_handoff(call.name, call.named)
        if call.shows_context:
            self._trial.recorder.observe(Observable.HANDOFF_CONTEXT)
        call.number = self._trial.recorder.handoff(
            call.agent or "agent",
            call.target or call.name,
            reason=asked.reason,
            context=(asked.context or {}) if call.shows_context else None,
            completed=completed,
            step=call.step,
        )
        return call.number

    # --- what did not ------------------------------------------------------------------------------------------------

    def put(self, call: AskedCall, state: CallState, *, error: Any = None, told: Any = None) -> None:
        """Put a call on record whose body never ran."""
        call.settled = True
        if call.target is not None:
            self.hand_over(call, completed=False)
            return
        recorder = self._trial.recorder
        if call.number is None:
            call.number = recorder.begin_tool_call(
                call.name, call.arguments, call_id=call.call_id, agent=call.agent, step=call.step, reported=True
            )
        recorder.end_tool_call(call.number, error=error, state=state, told=told)

    def tell(self, call: AskedCall, told: Any) -> None:
        """What the model was told of a call on record, where that differs from what the body gave."""
        if call.number is not None and call.target is None:
            self._trial.recorder.tell(call.number, to_json(told))

    def close(self) -> None:
        """The turn is over: nothing that is still open will run."""
        for call in self.open():
            if not call.offered:
                self.put(call, CallState.UNKNOWN_TOOL, error=f"there is no tool named {call.name!r}")
            elif call.rejected is not None or read_arguments(call.arguments)[1]:
                self.put(call, CallState.INVALID_ARGUMENTS, error=call.rejected or "the arguments are no JSON object")
            elif self.stopped(call):
                self.put(call, CallState.REFUSED, error="not approved")
            else:
                self.put(call, CallState.UNKNOWN, error="asked for, but it never ran")
