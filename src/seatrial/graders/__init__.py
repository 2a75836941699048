"""Graders: questions about one trial, each answered by a Grade.

`graders_for` gives the graders of a case: one for every key of `expected` and `thresholds` that the case writes, for
every turn's `expected` (`turn[2].required_tools`), `permissions` where there is a canary or a rules file, and the
case's own. A key with an empty list (`forbidden_tools: []`) asks for nothing and gives no grade, except
`required_tools: []`, which forbids every tool.

Tallies, by which every figure over trials is a sum of `hit` over a sum of `of`. Under turns they carry the same names.

- `required_tools`: `required_tool_recall` and `required_tool_recall/TOOL` (required tools called rightly / required
  tools), `tool_precision` and `tool_precision/TOOL` (tools called, required and right / tools called that the case
  states an expectation on; from `forbidden_tools` too), `tool_f1` (F1 of the names expected and called / 1)
- `handoff`: `handoff_accuracy` (right target, or none / 1), `handoff_recall` (required hand-off made / 1),
  `context_transfer` (hand-offs with all required context / those completed)
- `step_efficiency`: `steps` (steps / 1)
- `safety`: `blocked_events` (seen / 1)
- `permissions`: `secret_exposures`, `critical_violations`, `violations/KIND` (how many / 1)
- `error_handling`: `recovery_rate` (passed / 1, only where a fault was met)
- of any trace (`seatrial.core.trajectory.trace_tallies`): `invalid_argument_rate`, `loop_rate`, `safety/EVENT`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from seatrial.core.case import Case, Expected
from seatrial.core.expectations import problems_with_expected
from seatrial.core.grade import Grade
from seatrial.core.grade_names import PERMISSIONS, canonical, keys_of, name_problems, threshold_keys
from seatrial.core.grading import unobserved
from seatrial.core.model_json import json_of
from seatrial.core.ports import Grader, GradingContext
from seatrial.core.trace import Message, Observable, Trace
from seatrial.core.trajectory import steps_in
from seatrial.errors import UsageError
from seatrial.registry import load_object

if TYPE_CHECKING:
    from seatrial.graders.external import OwnGrader

__all__ = ["BuiltIn", "graders_for"]

_CALLS = {
    "outcome": "outcome:outcome",
    "required_tools": "tools:required_tools",
    "forbidden_tools": "tools:forbidden_tools",
    "tool_order": "tools:tool_order",
    "handoff": "handoffs:handoff",
    "asks": "answer:asks",
    "forbidden_approvals": "tools:forbidden_approvals",
    "safety": "controls:safety",
    "error_handling": "controls:error_handling",
    "step_efficiency": "limits:max_steps",
    "max_latency_ms": "limits:max_latency_ms",
    "max_estimated_cost_usd": "limits:max_estimated_cost_usd",
    "permissions": "controls:permissions",
}
"""Grade name to function of the graders of calls, state and cost."""
_ANSWERS = {
    "answer": "answer:answer",
    "output": "answer:output",
    "response.required_concepts": "answer:required_concepts",
    "response.prohibited_concepts": "answer:prohibited_concepts",
    "response.matches": "answer:matches_pattern",
    "response.equals": "answer:equals",
    "response.json_schema": "answer:json_schema",
    "response.max_characters": "answer:max_characters",
    "response.language": "answer:language",
}
"""Likewise for the graders of the final output."""


@cache
def _load(path: str) -> Any:
    return load_object(f"seatrial.graders.{path}")


@dataclass(frozen=True)
class BuiltIn:
    """A grader of this package: a function from a context to a Grade, loaded on first use."""

    name: str
    key: str
    """Name without its turn: which function grades."""
    expected: Expected
    required: bool = True
    turn: int | None = None
    """The user turn it looks at, from 1; None: the whole trial."""
    blocking: bool = False
    judge = False
    needs_answer: bool = field(init=False)
    """Whether it grades the final output. A turn's own answer is looked for in the trace instead."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs_answer", self.turn is None and self.key in _ANSWERS)

    @property
    def wanted(self) -> Any:
        """The expectation that it compares with, as JSON data; None where that is a threshold of the case."""
        found: Any = json_of(self.expected, exclude_unset=True)
        for key in self.key.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def grade(self, context: GradingContext) -> Grade | None:
        """The grade, None where it does not apply, such as in a turn that was never reached.

        That of a final output rests on the event in which it was said, and abstains where it could not be observed.
        """
        seen = context if context.expected is self.expected else replace(context, expected=self.expected)
        if self.turn is not None:
            if not self._reached(context.trace):
                return None
            seen = replace(seen, trace=_turn_of(context.trace, self.turn), output=None)
        of_answer, trace = _ANSWERS.get(self.key), seen.trace
        unheard = unobserved(trace, Observable.OUTPUT) if of_answer and trace.output is None else None
        grade: Grade | None = unheard or _load(of_answer or _CALLS[self.key])(seen)
        if grade is None:
            return None
        own: dict[str, Any] = {"name": self.name, "required": self.required}
        if of_answer and not grade.evidence:
            own["evidence"] = _said(trace)
        return grade.altered(own)

    def _reached(self, trace: Trace) -> bool:
        turn = self.turn or 1
        answered = len(trace.outputs) >= turn
        return answered or (self.key not in _ANSWERS and any(event.turn == turn for event in trace.events))


def _said(trace: Trace) -> tuple[int, ...]:
    """The event in which the last answer was said, on which its grade rests; none where messages were not observed."""
    for event in reversed(trace.events):
        if type(event) is Message and event.role == "assistant":
            return (event.number,)
    return ()


def _turn_of(trace: Trace, number: int) -> Trace:
    """One turn with its own answer and steps."""
    part = trace.turn(number)
    return part.model_copy(update={"steps": steps_in(part), "outputs": trace.outputs[number - 1 : number]})


def graders_for(case: Case, *, canaries: bool = False, rules: Any = None) -> tuple[Grader, ...]:
    """Every grader of a case, in the order of its keys.

    `canaries` says whether its fixture has secrets, `rules` are the project's permission rules or None.
    Raises UsageError for an expectation that cannot be graded, an own grader that cannot be loaded or called, an
    unknown name in `advisory`, and two grades of one name.
    """
    _check_expectations(case)
    built = list(_built_in(case.expected))
    built += [BuiltIn(key, key, case.expected) for key in threshold_keys(case)]
    for number, turn in enumerate(case.turns, start=2):
        built += _built_in(turn.expected, number)
    has_permissions = canaries or rules is not None
    if has_permissions:
        built.append(BuiltIn(PERMISSIONS, PERMISSIONS, case.expected))
    own = tuple(_own(case))
    for problem in name_problems(case, [grader.name for grader in own], permissions=has_permissions):
        raise UsageError(f"case {case.id}: {problem.message}" + (f"; {problem.hint}" if problem.hint else ""))
    graders: list[BuiltIn | OwnGrader] = [*built, *own]
    return tuple(_advisory(grader, case) for grader in graders)


def _built_in(expected: Expected, turn: int | None = None) -> Iterator[BuiltIn]:
    prefix = "" if turn is None else f"turn[{turn}]."
    for key in keys_of(expected):
        yield BuiltIn(f"{prefix}{key}", key, expected, turn=turn)


def _own(case: Case) -> Iterator[OwnGrader]:
    """The case's own graders; the second of one path is called `path#2`."""
    if not case.graders:
        return
    from seatrial.graders.external import own_grader

    seen: Counter[str] = Counter()
    for use in case.graders:
        seen[use.use] += use.name is None
        repeat = seen[use.use]
        yield own_grader(use, name=use.use if repeat < 2 else f"{use.use}#{repeat}")


# --- what can be wrong ----------------------------------------------------------------------------------------------


def _check_expectations(case: Case) -> None:
    if case.judges:
        raise UsageError(f"case {case.id}: judges: this version has no judges; use `response` or an own grader")
    parts = {"expected": case.expected}
    parts |= {f"turns[{number}].expected": turn.expected for number, turn in enumerate(case.turns)}
    problems = [
        f"{part}.{path}: {problem}"
        for part, expected in parts.items()
        for path, problem in problems_with_expected(expected)
    ]
    if problems:
        raise UsageError(f"case {case.id}: " + "; ".join(problems))


def _advisory(grader: BuiltIn | OwnGrader, case: Case) -> Grader:
    listed = grader.name in {canonical(name) for name in case.advisory}
    return replace(grader, required=False) if listed else grader
