"""What happens in each situation, and what its trace must say: a function of what is known of the framework.

A plan's functions give data only; `checks` compares. `plans` has them by the names of `SITUATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seatrial.testing.conformance.expected import Facts, Plan
from seatrial.testing.conformance.situations import agents, answers, approvals, calls, ends, surroundings, trials

__all__ = ["plans"]

plans: Mapping[str, Callable[[Facts], Plan]] = {
    "answer_only": answers.answer_only,
    "two_calls": calls.two_calls,
    "parallel_calls": calls.parallel_calls,
    "parallel_blocking_calls": calls.parallel_blocking_calls,
    "raising_tool": calls.raising_tool,
    "unknown_tool": calls.unknown_tool,
    "invalid_arguments": calls.invalid_arguments,
    "malformed_arguments": calls.malformed_arguments,
    "nested_agent": agents.nested_agent,
    "handoff": agents.handoff,
    "refused_handoff": agents.refused_handoff,
    "approval_granted": approvals.granted,
    "approval_denied": approvals.denied,
    "approval_edited": approvals.edited,
    "approval_unanswered": approvals.unanswered,
    "step_limit": ends.step_limit,
    "model_error": ends.model_error,
    "timeout": ends.timeout,
    "streaming": answers.streaming,
    "usage": answers.usage,
    "three_turns": trials.three_turns,
    "isolation": trials.isolation,
    "twenty_trials": trials.twenty_trials,
    "crash": ends.crash,
    "stand_in": surroundings.stand_in,
    "injected_fault": surroundings.injected_fault,
}
