"""One attempt at a trial as the proxy sees it: what was asked, what answered, what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from seatrial.core.cassette import (
    Cassette,
    Exchange,
    Part,
    RecordedRequest,
    RecordedResponse,
    Take,
    first_difference,
)

__all__ = ["Library", "OpenTake", "Slot"]

_PATIENCE_S = 2.0
"""How long the end of an attempt waits for answers that are already on their way."""


class Library(Protocol):
    """Where recordings are kept."""

    agent: str
    """Digest of the agent's spec."""

    def read(self, case_id: str) -> Cassette:
        """The recording of a case, an empty one where there is none. StorageError when it cannot be read."""

    def write(self, case_id: str, trial: int, part: Part, position: int, take: Take) -> None:
        """Put an attempt's recording at its position of the trial. StorageError when it cannot be written."""

    def why_none(self, case_id: str, trial: int, part: Part, take: int) -> str:
        """Why there is no such take, in words."""


@dataclass(eq=False)
class Slot:
    """One exchange that is being recorded."""

    request: RecordedRequest
    response: RecordedResponse | None = None
    answering: bool = False
    """Its answer is on its way to the client."""


@dataclass(eq=False)
class OpenTake:
    """One attempt's part while it lasts; safe for any thread."""

    case_id: str
    trial: int
    attempt: int
    part: Part = "agent"
    recorded: Take | None = None
    """What is replayed; None: nothing is there to replay, or this attempt is recorded."""
    over: threading.Event = field(default_factory=threading.Event)
    replayed: int = 0
    problem: str = ""
    _slots: list[Slot] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)
    _settled: threading.Condition = field(default_factory=threading.Condition)

    @property
    def name(self) -> str:
        return f"{self.case_id}#{self.trial}"

    def fail(self, problem: str) -> str:
        """Note the first thing that went wrong; gives what is told to the client."""
        with self._settled:
            self.problem = self.problem or problem
        return problem

    # --- recording -----------------------------------------------------------------------------------------------

    def begin(self, request: RecordedRequest) -> Slot:
        """A request has come."""
        slot = Slot(request)
        with self._settled:
            self._slots.append(slot)
        return slot

    def answering(self, slot: Slot) -> None:
        """Its answer begins."""
        with self._settled:
            slot.answering = True

    def settle(self, slot: Slot, response: RecordedResponse | None) -> None:
        """Its answer is complete, or (None) it got none."""
        with self._settled:
            slot.response, slot.answering = response, False
            self._settled.notify_all()

    def end(self) -> Take:
        """The attempt is over; what it recorded. Waits for answers that the client has been getting."""
        with self._settled:
            self._settled.wait_for(lambda: not any(slot.answering for slot in self._slots), _PATIENCE_S)
            self.over.set()
            return tuple(Exchange(request=slot.request, response=slot.response) for slot in self._slots)

    # --- replaying -----------------------------------------------------------------------------------------------

    def answer_to(self, request: RecordedRequest, library: Library) -> Exchange | str:
        """The recorded exchange that answers a request, now used; or why there is none."""
        if self.recorded is None:
            return library.why_none(self.case_id, self.trial, self.part, self.attempt)
        with self._settled:
            equal = [at for at, exchange in enumerate(self.recorded) if exchange.request.equals(request)]
            free = next((at for at in equal if at not in self._used), None)
            if free is None:
                left = [exchange.request for at, exchange in enumerate(self.recorded) if at not in self._used]
                return self._why(request, len(equal), left)
            self._used.add(free)
            self.replayed += self.recorded[free].response is not None
            return self.recorded[free]

    def _why(self, request: RecordedRequest, equal: int, left: Sequence[RecordedRequest]) -> str:
        whose = "the trial" if self.part == "agent" else "the trial's graders"
        asked = f"request {len(self._used) + 1} of {whose}, {request.name}"
        if equal:
            times = "once" if equal == 1 else f"{equal} times"
            return f"{asked}: was recorded {times}, and is asked for once more"
        recorded = [exchange.request for exchange in self.recorded or ()]
        if not recorded:
            return f"{asked}: the trial was recorded without a request"
        return f"{asked}: {first_difference(request, left or recorded)}"
