"""Questions that a workflow asks a person, answered by the trial's script.

`InputRequiredEvent(action=NAME, arguments={...})` is answered by `HumanResponseEvent(response=DECISION,
arguments={...}, approver=...)`, or by the class derived from it that the asking tool waits for. Every other field of
the request stands in the answer again, so that `requirements` of the waiting tool are met. A question of any other
shape stays unanswered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workflows.events import HumanResponseEvent, InputRequiredEvent

from seatrial.agents.llamaindex.calls import RunningCall
from seatrial.agents.llamaindex.recorder import LlamaIndexRecorder

__all__ = ["Approver"]


@dataclass(frozen=True)
class Approver:
    """Answers what a workflow asks in one trial."""

    recorder: LlamaIndexRecorder

    def answer(self, request: InputRequiredEvent) -> HumanResponseEvent | None:
        """The event that answers; None where nobody does."""
        asked = {**request.model_dump(), **dict(request.items())}
        asked.pop("_data", None)
        call = self._asking(request)
        action, arguments = asked.pop("action", None), asked.pop("arguments", None)
        if not isinstance(action, str):
            self._leave_open(asked, call)
            return None
        return self._decided(action, arguments or {}, asked, call)

    def _decided(
        self, action: str, arguments: Any, beside: Mapping[str, Any], call: RunningCall | None
    ) -> HumanResponseEvent | None:
        call_id, agent = (None, None) if call is None else (call.call_id, call.agent)
        answer = self.recorder.trial.approve(action, arguments, call_id=call_id, agent=agent)
        if answer.decision == "unanswered":
            return None
        if call is not None and answer.decision == "edited":
            call.instead = dict(answer.arguments)
        fields = {**beside, "response": answer.decision, "arguments": answer.arguments, "approver": answer.approver}
        return _kind_of_answer(call)(**fields)

    def _asking(self, request: InputRequiredEvent) -> RunningCall | None:
        """The call whose body asks this."""
        waiting = [call for call in self.recorder.waiting.values() if call.waiter is not None]
        return next((call for call in waiting if call.waiter.waiter_event == request), None)

    def _leave_open(self, question: Mapping[str, Any], call: RunningCall | None) -> None:
        """A question that no script can answer, on record as such."""
        action, call_id = "input", None
        if call is not None:
            action, call_id, call.question_open = call.name, call.call_id, True
        self.recorder.trial.recorder.approval(action, {"question": dict(question)}, "unanswered", call_id=call_id)


def _kind_of_answer(call: RunningCall | None) -> type[HumanResponseEvent]:
    wanted = None if call is None else call.waiter.event_type
    return wanted if isinstance(wanted, type) and issubclass(wanted, HumanResponseEvent) else HumanResponseEvent
