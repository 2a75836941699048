"""What a set of spans can show, and why not the rest. What is missing is "not observed", never "did not happen"."""

from __future__ import annotations

from collections import Counter

from seatrial.agents.otel.meaning import Role, asked_by, has_messages, tool_of, usage_of
from seatrial.agents.otel.span import Span
from seatrial.agents.otel.tree import SpanTree
from seatrial.core.trace import Observable
from seatrial.environment.recorder import Recorder, is_handoff_tool

__all__ = ["evidence_in", "note_evidence"]

_NOT_READ = {
    Observable.APPROVALS: "spans do not show approvals",
    Observable.SAFETY: "spans do not show what an agent reports of its safety",
    Observable.OUTCOME: "spans do not show the outcome",
}
"""What an exported run may have observed, and its spans do not tell again."""
_SILENT = "the spans do not hold what the model said (capturing messages is off)"


def note_evidence(tree: SpanTree, recorder: Recorder, gaps: str | None = None) -> None:
    """Note in a trial's record what these spans can show, and why not the rest; nothing where they have gaps."""
    for what, why in evidence_in(tree).items():
        if gaps is not None:
            recorder.lacks(what, why or gaps)
            continue
        if why is None:
            recorder.observe(what)
        else:
            recorder.lacks(what, why)


def evidence_in(tree: SpanTree) -> dict[Observable, str | None]:
    """Every kind of evidence but the output, with None where these spans show it, else why they do not."""
    declared = tree.declared
    if declared is not None:  # a run of Seatrial that was exported
        read = declared - _NOT_READ.keys()
        words = "the exported run had not observed it"
        others = [what for what in Observable if what is not Observable.OUTPUT]  # the session sees that for itself
        return {what: None if what in read else _NOT_READ.get(what, words) for what in others}
    models, calls = tree.of(Role.MODEL), _tool_calls(tree)
    handed = _handoffs(tree)
    return {
        Observable.MODEL_CALLS: None if models else "no span is one of a model call",
        Observable.USAGE: _usage(models),
        Observable.MESSAGES: None if _spoken(models) else _SILENT,
        Observable.TOOL_CALLS: calls,
        Observable.HANDOFFS: None if handed or (tree.of(Role.AGENT) and calls is None) else "no span names an agent",
        Observable.HANDOFF_CONTEXT: _context(handed),
        Observable.RETRIEVAL: None if tree.of(Role.RETRIEVAL) else "no span is one of a retrieval",
        **_NOT_READ,
    }


def _spoken(models: list[Span]) -> bool:
    return bool(models) and all(has_messages(span) for span in models)


def _usage(models: list[Span]) -> str | None:
    if not models:
        return "no span is one of a model call"
    silent = sum(usage_of(span) is None for span in models)
    return f"{silent} of {len(models)} spans of model calls say nothing of tokens" if silent else None


def _tool_calls(tree: SpanTree) -> str | None:
    """Without a span of a tool there were no calls only where the models' words are known, and asked for none."""
    models = tree.of(Role.MODEL)
    lost = _asked_without_span(tree)
    if lost:
        return f"a model asked for {', '.join(lost)}, and no span says what became of it"
    if any(_stopped_for_tools(span) and not _has_calls(tree, span) for span in models):
        return "a model stopped for a tool, and no span is one of its call"
    if tree.of(Role.TOOL) or (_spoken(models) and not any(asked_by(span) for span in models)):
        return None
    return "no span is one of a tool, and " + (_SILENT if models else "none is one of a model call")


def _asked_without_span(tree: SpanTree) -> list[str]:
    """Names of tools that models asked for more often than there are spans of them."""
    done = Counter(tool_of(span).name for span in tree.of(Role.TOOL))
    asked = Counter(call.name for span in tree.of(Role.MODEL) for call in asked_by(span))
    return sorted(name for name, times in asked.items() if times > done[name] and not _needs_no_span(name))


def _stopped_for_tools(span: Span) -> bool:
    """Whether a model that does not say what it asked for says that it asked for something."""
    reasons = str(span.attributes.get("gen_ai.response.finish_reasons", ""))
    return not has_messages(span) and "tool" in reasons


def _has_calls(tree: SpanTree, model: Span) -> bool:
    """Whether a tool was called or a conversation handed over between a model call and the next one."""
    began = model.end_ns or model.start_ns
    later = [span.start_ns for span in tree.of(Role.MODEL) if span.start_ns >= began and span is not model]
    until = min(later, default=None)
    calls = [*tree.of(Role.TOOL), *tree.of(Role.HANDOFF)]
    return any(began <= span.start_ns and (until is None or span.start_ns <= until) for span in calls)


def _needs_no_span(name: str) -> bool:
    """Whether a framework runs no tool for such a call: it hands over, or fills in the form of an answer."""
    return is_handoff_tool(name) or name.startswith("final_result")


def _handoffs(tree: SpanTree) -> list[Span]:
    return [*tree.of(Role.HANDOFF), *(span for span in tree.of(Role.TOOL) if is_handoff_tool(tool_of(span).name))]


def _context(handed: list[Span]) -> str | None:
    bare = [span for span in handed if not tool_of(span).arguments]
    if not handed:
        return "there is no span of a hand-off"
    return "spans of hand-offs have no arguments" if len(bare) == len(handed) else None
