"""Scripted approvals: the first rule of an action whose `when` matches answers; without one nobody does."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from seatrial.core.fixture import ApprovalRule
from seatrial.core.matching import matches
from seatrial.environment.recorder import read_arguments

__all__ = ["ApprovalAnswer", "Approvals", "Decision"]

Decision = Literal["granted", "denied", "edited", "unanswered"]


@dataclass(frozen=True)
class ApprovalAnswer:
    """How a request for approval was answered."""

    decision: Decision
    arguments: Any
    """What may be run: as asked for, with the edited ones replaced when `decision` is edited."""
    approver: str | None = None
    scripted: bool = True
    """False when no rule matched: the request stayed unanswered because the case foresaw none."""

    @property
    def allowed(self) -> bool:
        """Whether the action may be run, with `arguments`."""
        return self.decision in ("granted", "edited")


class Approvals:
    """The scripted answers of one trial, and what they were."""

    def __init__(self, rules: Iterable[ApprovalRule], case_input: Any = None) -> None:
        self._rules = tuple(rules)
        self._input = case_input
        self._answers: list[tuple[str, Any, str | None, ApprovalAnswer]] = []
        self._lock = threading.Lock()

    def ask(self, action: str, arguments: Any, call_id: str | None = None) -> ApprovalAnswer:
        """The answer to this request. Arguments are a mapping, None or JSON text, as for a tool call."""
        asked, _ = read_arguments(arguments)
        rule = next((rule for rule in self._rules if self._fits(rule, action, asked)), None)
        answer = ApprovalAnswer("unanswered", asked, scripted=False) if rule is None else _answer(rule, asked)
        with self._lock:
            self._answers.append((action, asked, call_id, answer))
        return answer

    @property
    def wait_is_scripted(self) -> bool:
        """Whether something stayed unanswered, and each time because a rule says so."""
        with self._lock:
            unanswered = [answer for *_, answer in self._answers if answer.decision == "unanswered"]
        return bool(unanswered) and all(answer.scripted for answer in unanswered)

    def _fits(self, rule: ApprovalRule, action: str, asked: Any) -> bool:
        return rule.action == action and (rule.when is None or matches(rule.when, asked, input=self._input))

    def stopped(self, action: str, arguments: Any, call_id: str | None = None) -> bool:
        """Whether the latest approval of this very call (its id, else its name and arguments) did not allow it."""
        read, _ = read_arguments(arguments)
        with self._lock:
            answers = list(reversed(self._answers))
        for asked_action, asked, asked_id, answer in answers:
            if call_id is not None and asked_id is not None:
                own = call_id == asked_id
            else:
                own = asked_action == action and read in (asked, answer.arguments)
            if own:
                return not answer.allowed
        return False


def _answer(rule: ApprovalRule, asked: Any) -> ApprovalAnswer:
    arguments = asked
    if rule.decision == "edited":
        before = asked if isinstance(asked, dict) else {}
        arguments = {**before, **copy.deepcopy(rule.arguments or {})}
    return ApprovalAnswer(rule.decision, arguments, None if rule.decision == "unanswered" else rule.by)
