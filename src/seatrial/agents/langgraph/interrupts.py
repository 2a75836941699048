"""Interrupts of a graph as requests for approval, answered by the trial's script.

- The human-in-the-loop middleware: `{action_requests: [{name, args}], ...}`, resumed with `{decisions: [...]}`:
  granted is `approve`, edited `edit` with the edited arguments, denied `reject`.
- `interrupt({"action": name, "arguments": {...}})`, resumed with `{"decision": ..., "arguments": ...}`.
- A static stop (`interrupt_before`, `interrupt_after`): one request for each pending tool call, else one for the node
  that comes next, by its name; the graph goes on when all are granted. It cannot be told anything else.
- A question of any other shape stays unanswered.

Every question is put on record, also when another one stays unanswered; then the turn ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.types import Command

from seatrial.agents.langchain.calls import AskedCall
from seatrial.agents.langchain.recorder import LangChainRecorder
from seatrial.environment.approvals import ApprovalAnswer

__all__ = ["Approver"]


@dataclass(frozen=True)
class Approver:
    """Answers what a graph asks in one trial."""

    recorder: LangChainRecorder

    def resume(self, snapshot: Any) -> Command[Any] | None:
        """What the graph goes on with; None when something stayed unanswered."""
        interrupts = {one.id: one for task in snapshot.tasks for one in task.interrupts}
        answers = {key: self._answer(one) for key, one in interrupts.items()}
        if any(answer is None for answer in answers.values()):
            return None
        return Command(resume=answers)

    def may_go_on(self, snapshot: Any) -> bool:
        """Whether a graph that stopped by itself before (or after) a node may go on."""
        calls = list(self.recorder.calls.open())
        answers = [self._ask(call.name, call.arguments, call) for call in calls]
        answers += [self._ask(node, {}, None) for node in snapshot.next if not calls]
        return all(answer.decision == "granted" for answer in answers)

    def _answer(self, interrupt: Any) -> Any:
        value = interrupt.value
        call = self.recorder.interrupted_by(interrupt.id)
        if isinstance(value, Mapping) and isinstance(value.get("action_requests"), list):
            return self._decisions(value["action_requests"])
        if isinstance(value, Mapping) and isinstance(value.get("action"), str):
            answer = self._ask(value["action"], value.get("arguments") or {}, call)
            if answer.decision == "unanswered":
                return None
            if answer.decision == "edited" and call is not None and call.name == value["action"]:
                call.edited = answer.arguments
            return {"decision": answer.decision, "arguments": answer.arguments, "approver": answer.approver}
        self._leave_open(value, call)
        return None

    def _decisions(self, requests: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
        decisions = [self._decision(request) for request in requests]
        return None if None in decisions else {"decisions": decisions}

    def _decision(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        name, arguments = str(request.get("name")), request.get("args") or {}
        call = self.recorder.calls.awaiting_approval(name, arguments)
        answer = self._ask(name, arguments, call)
        if answer.decision == "edited":
            if call is not None:
                call.named |= frozenset(answer.arguments)
            return {"type": "edit", "edited_action": {"name": name, "args": answer.arguments}}
        return {"granted": {"type": "approve"}, "denied": {"type": "reject"}}.get(answer.decision)

    def _ask(self, action: str, arguments: Any, call: AskedCall | None) -> ApprovalAnswer:
        trial = self.recorder.trial
        call_id, agent = (None, None) if call is None else (call.call_id, call.agent)
        return trial.approve(action, arguments, call_id=call_id, agent=agent)

    def _leave_open(self, question: Any, call: AskedCall | None) -> None:
        """A question that no script can answer, on record as such."""
        action = "interrupt"
        if call is not None:
            action, call.unanswered = call.name, True
        self.recorder.trial.recorder.approval(
            action, {"question": question}, "unanswered", call_id=call.call_id if call else None
        )
