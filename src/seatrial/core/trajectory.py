"""What can be said of any trace, whatever its case expects."""

from __future__ import annotations

from collections import Counter

from seatrial.core.grade import Tally
from seatrial.core.trace import CallState, Handoff, Message, SafetyEvent, ToolCallEvent, Trace

__all__ = ["handoff_loops", "steps_in", "trace_tallies"]


def handoff_loops(trace: Trace) -> tuple[int, ...]:
    """Numbers of the hand-offs that closed a loop.

    A loop is the same (source, target) again with no tool call or user turn between, or a circle in the chain of
    delegations that were not returned. Going back to the agent that delegated is no loop. Where the order between
    tool calls and hand-offs is unknown and there were tool calls, only circles count.
    """
    repeats = _repeats(trace) if trace.ordered or not trace.tool_calls else set()
    return tuple(sorted(repeats | _circles(trace)))


def _repeats(trace: Trace) -> set[int]:
    seen: set[tuple[str, str]] = set()
    found: set[int] = set()
    turn = 1
    for event in trace.events:
        said = isinstance(event, Message) and event.role == "user"
        if event.turn != turn or said or isinstance(event, ToolCallEvent):
            seen.clear()
            turn = event.turn
        if isinstance(event, Handoff) and event.completed:
            pair = (event.source, event.target)
            if pair in seen:
                found.add(event.number)
            seen.add(pair)
    return found


def _circles(trace: Trace) -> set[int]:
    chain: list[str] = []
    found: set[int] = set()
    for handoff in trace.handoffs:
        if not handoff.completed:
            continue
        chain = _chain_to(chain, handoff.source)
        if len(chain) > 1 and chain[-2] == handoff.target:
            chain = chain[:-1]
            continue
        if handoff.target in chain:
            found.add(handoff.number)
            chain = _chain_to(chain, handoff.target)
        else:
            chain = [*chain, handoff.target]
    return found


def _chain_to(chain: list[str], agent: str) -> list[str]:
    """The delegations that led to `agent`."""
    return chain[: chain.index(agent) + 1] if agent in chain else [agent]


def trace_tallies(trace: Trace) -> dict[str, Tally]:
    """Tallies of the trace itself, for figures that need no expectation.

    - `invalid_argument_rate`: calls rejected by the tool's own schema, or malformed / calls; absent without a call.
    - `loop_rate`: 1 when there was a hand-off loop / 1; absent without a completed hand-off.
    - `safety/EVENT`: how often the trace holds this safety event / 1.
    """
    tallies: dict[str, Tally] = {}
    kinds, invalid = set(map(type, trace.events)), CallState.INVALID_ARGUMENTS
    if ToolCallEvent in kinds:
        rejected = [call.state is invalid or call.malformed for call in trace.of(ToolCallEvent)]
        tallies["invalid_argument_rate"] = Tally(hit=sum(rejected), of=len(rejected))
    if Handoff in kinds and any(handoff.completed for handoff in trace.handoffs):
        tallies["loop_rate"] = Tally(hit=bool(handoff_loops(trace)), of=1)
    if SafetyEvent in kinds:
        counts = Counter(event.event for event in trace.of(SafetyEvent))
        tallies |= {f"safety/{name}": Tally(hit=number, of=1) for name, number in sorted(counts.items())}
    return tallies


def steps_in(trace: Trace) -> int | None:
    """Steps among this trace's events, in the unit that the whole trace is counted in; None: not observed."""
    if trace.steps is None:
        return None
    if trace.steps_are_tool_calls:
        return len(trace.tool_calls)
    return sum(event.kind == "model_call" for event in trace.events)
