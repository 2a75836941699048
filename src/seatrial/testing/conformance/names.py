"""The situations by name, in the order of the matrix, each with what happens in it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SITUATIONS"]

SITUATIONS: Mapping[str, str] = {
    "answer_only": "The agent answers without any tool.",
    "two_calls": "It calls one tool, then another.",
    "parallel_calls": "One reply asks for two calls; the second finishes first.",
    "parallel_blocking_calls": "The same with tools that block their thread.",
    "raising_tool": "A tool raises.",
    "unknown_tool": "It calls a tool that does not exist.",
    "invalid_arguments": "It calls a tool with arguments that do not fit.",
    "malformed_arguments": "It calls a tool with arguments that are no JSON object.",
    "nested_agent": "It calls another agent as a tool.",
    "handoff": "It hands over to another agent, which goes on.",
    "refused_handoff": "It hands over to an agent that does not exist.",
    "approval_granted": "A call needs approval, which is granted.",
    "approval_denied": "A call needs approval, which is denied.",
    "approval_edited": "A call needs approval, which is given for other arguments.",
    "approval_unanswered": "A call needs approval, and nobody answers.",
    "step_limit": "It never comes to an end.",
    "model_error": "The model fails.",
    "timeout": "A tool does not come back.",
    "streaming": "The model streams its replies.",
    "usage": "Every kind of token; then a reply of which the provider said nothing.",
    "three_turns": "A conversation of three turns.",
    "isolation": "The same agent has one conversation after another.",
    "twenty_trials": "Twenty trials of the same agent at once.",
    "crash": "The agent crashes after two calls.",
    "stand_in": "The fixture answers in a tool's place.",
    "injected_fault": "The fixture has a tool fail.",
}
"""Name to what happens; the keys are what `Framework.absent` may name."""
