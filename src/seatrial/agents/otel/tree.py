"""The spans of one turn: who is above whom, and which of them say the same thing twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from seatrial.agents.otel.meaning import Role, agent_of, role_of, tool_of
from seatrial.agents.otel.span import Span

__all__ = ["SpanTree"]


class SpanTree:
    """Spans with a role, in the order in which they began."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._all = {span.span_id: span for span in spans}

    @cached_property
    def spans(self) -> list[tuple[Span, Role]]:
        """Every span with a role, once."""
        roles = [(span, role_of(span)) for span in self._all.values()]
        known = [(span, role) for span, role in roles if role is not None and not self._is_echo(span, role)]
        return sorted(known, key=lambda each: (each[0].start_ns, -(each[0].end_ns or each[0].start_ns)))

    @property
    def declared(self) -> frozenset[str] | None:
        """What a run of Seatrial, exported as spans, had observed; None for any other spans."""
        found = (span.attributes.get("seatrial.observes") for span in self._all.values())
        names = next((names for names in found if names is not None), None)
        return None if names is None else frozenset(map(str, names))

    @cached_property
    def tops(self) -> list[Span]:
        """The spans that none of these is above: the roots, and those whose parent is elsewhere."""
        return [span for span in self._all.values() if not any(True for _ in self.above(span))]

    @property
    def gaps(self) -> str | None:
        """Why spans are known to be missing; None where nothing tells of it.

        A single top span of an agent may have its parent elsewhere: in the service that asked for it.
        """
        orphans = [span for span in self.tops if span.parent_id not in (None, span.span_id)]
        if orphans and (len(self.tops) > 1 or role_of(self.tops[0]) is not Role.AGENT):
            return f"the parent of the span {orphans[0].name!r} is missing, so spans were lost"
        unended = next((span for span in self.tops if span.end_ns is None), None)
        if unended is not None:
            return f"the span {unended.name!r} never ended, so spans may be missing"
        dropped = next((span for span in self._all.values() if span.dropped), None)
        return None if dropped is None else f"the span {dropped.name!r} had attributes or events left out"

    @property
    def replayed(self) -> int:
        """Model calls that were answered from cassettes, in an exported run of Seatrial."""
        return sum(int(span.attributes.get("seatrial.replayed", 0) or 0) for span in self._all.values())

    @property
    def cases(self) -> frozenset[str]:
        """The cases that these spans name as theirs."""
        named = (span.attributes.get("seatrial.case") for span in self._all.values())
        return frozenset(str(name) for name in named if name is not None)

    @property
    def trace_ids(self) -> frozenset[str]:
        """The traces that these spans belong to."""
        return frozenset(span.trace_id for span in self._all.values())

    def of(self, wanted: Role) -> list[Span]:
        """The spans of one role."""
        return [span for span, role in self.spans if role is wanted]

    def above(self, span: Span) -> Iterator[Span]:
        """The spans that it is part of, the nearest first."""
        seen = {span.span_id}
        while span.parent_id in self._all and span.parent_id not in seen:
            span = self._all[span.parent_id]
            seen.add(span.span_id)
            yield span

    def agent(self, span: Span) -> str | None:
        """Who did it: the agent that the span names, else the nearest one above it."""
        named = (agent_of(each) for each in (span, *self.above(span)))
        return next((name for name in named if name is not None), None)

    def _is_echo(self, span: Span, role: Role) -> bool:
        """Whether a span above says it already: a client's span in a framework's, a server's in a caller's."""
        for above in self.above(span):
            other = role_of(above)
            if role is Role.MODEL and other is Role.MODEL:
                return True
            if role is Role.TOOL and other is Role.TOOL and tool_of(above).name == tool_of(span).name:
                return True
            if other in (Role.AGENT, Role.TOOL):
                return False
        return False
