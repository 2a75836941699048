"""Recorded model calls: what a cassette holds, and which recording answers a request.

A trial's recording is a list of takes, one an attempt; a take is the exchanges in the order in which they began. A
request is answered by the first exchange of the same take with an equal request that was not used yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from seatrial.core.encoding import dumps, shortened
from seatrial.core.frozen import Frozen

__all__ = [
    "Cassette",
    "Exchange",
    "Part",
    "RecordedRequest",
    "RecordedResponse",
    "Take",
    "TrialTakes",
    "first_difference",
]

_SHOWN = 120
"""Characters of a value in a message."""


class RecordedRequest(Frozen):
    """A request as it is compared: masked, without credentials and without what changes from call to call."""

    upstream: str
    """Name of where it goes."""
    method: str
    path: str
    """Below the upstream's own address, with the query."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Those that change what the endpoint does."""
    body: Any = None
    """JSON data; text where it is no JSON, `{"$type": "bytes"}` where it is no text."""

    @property
    def name(self) -> str:
        """As it is called in messages."""
        return f"{self.method} {self.path}"

    def equals(self, other: RecordedRequest) -> bool:
        """Whether it asks for the same. In JSON `true` is not 1, as it is in Python."""
        return self == other and dumps(self.body, sort_keys=True) == dumps(other.body, sort_keys=True)


def _sendable_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError(f"{name!r} is no name of a header in lower case")
    return name


def _sendable(value: str) -> str:
    if any((ord(c) < 32 and c != "\t") or ord(c) == 127 or ord(c) > 255 for c in value):
        raise ValueError("a header holds neither line ends nor other control characters")
    return value


def _whole_event(event: dict[str, Any]) -> dict[str, Any]:
    if not event or set(event) - ({"text"} if "text" in event else {"event", "data"}):
        raise ValueError("an event holds `text`, or `event` and `data`")
    said = {name: isinstance(event[name], str) for name in ("text", "event") if name in event}
    if not all(said.values()):
        raise ValueError(f"{' and '.join(said)} of an event is text")
    if "\n" in event.get("event", ""):
        raise ValueError("`event` of an event is one line")
    return event


_Header = Annotated[str, AfterValidator(_sendable)]


class RecordedResponse(Frozen):
    """What came back, masked; whatever it holds can be sent again."""

    status: Annotated[int, Field(ge=200, le=999)]
    headers: dict[Annotated[str, AfterValidator(_sendable_name)], _Header] = Field(default_factory=dict)
    body: Any = None
    """As in a request; None where it was a stream of events."""
    events: tuple[Annotated[dict[str, Any], AfterValidator(_whole_event)], ...] | None = None
    """A stream's events in order: `{event, data}`, or `{text}` for what is none of these."""
    cut: bool = False
    """The connection broke before the end."""


class Exchange(Frozen):
    """One request and its answer."""

    request: RecordedRequest
    response: RecordedResponse | None = None
    """None: the client went away, or the trial ended, before there was one."""


Take = tuple[Exchange, ...]
Part = Literal["agent", "graders"]
"""Whose calls they are."""


class TrialTakes(Frozen):
    """All attempts at one trial, in order."""

    trial: Annotated[int, Field(ge=1)]
    agent: tuple[Take, ...] = ()
    """What the agent asked."""
    graders: tuple[Take, ...] = ()
    """What graders asked that call a model themselves."""


class Cassette(Frozen):
    """What one build's trials of one case asked its models: the content of a file."""

    version: Literal[1] = 1
    build: str
    agent: str
    """Digest of the agent's spec: trials of another one are answered by none of it."""
    case: str
    trials: tuple[TrialTakes, ...] = ()

    @field_validator("trials")
    @classmethod
    def _each_once(cls, trials: tuple[TrialTakes, ...]) -> tuple[TrialTakes, ...]:
        numbers = [each.trial for each in trials]
        twice = next((number for at, number in enumerate(numbers) if number in numbers[:at]), None)
        if twice is not None:
            raise ValueError(f"trial {twice} stands there twice")
        return trials

    def of(self, trial: int) -> TrialTakes:
        """The recording of one trial; an empty one when there is none."""
        return next((found for found in self.trials if found.trial == trial), TrialTakes(trial=trial))

    def with_take(self, trial: int, part: Part, position: int, take: Take) -> Cassette:
        """The same with one attempt's recording at its position (from 0); what stood there and after it goes."""
        before = self.of(trial)
        kept: tuple[Take, ...] = getattr(before, part)[:position]
        whole = before.model_copy(update={part: (*kept, *[()] * (position - len(kept)), take)})
        others = [found for found in self.trials if found.trial != trial]
        return self.model_copy(update={"trials": tuple(sorted([*others, whole], key=lambda found: found.trial))})


def first_difference(request: RecordedRequest, recorded: Sequence[RecordedRequest]) -> str:
    """Where a request first differs from the nearest recorded one: the one with the fewest differences.

    `recorded` is not empty and holds none equal to it.
    """
    now = request.model_dump()
    found = [list(_differences(before.model_dump(), now)) for before in recorded]
    nearest = min(range(len(found)), key=lambda at: (recorded[at].path != request.path, len(found[at])))
    place, before, after = found[nearest][0]
    more = f" (and {len(found[nearest]) - 1} more differences)" if len(found[nearest]) > 1 else ""
    return f"{place}: recorded {_told(before)}, now {_told(after)}{more}"


_ABSENT = object()


def _told(value: Any) -> str:
    return "nothing" if value is _ABSENT else shortened(dumps(value), _SHOWN)


def _differences(before: Any, now: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in (*before, *(key for key in now if key not in before)):
            inner = f"{place}.{key}" if place else str(key)
            yield from _differences(before.get(key, _ABSENT), now.get(key, _ABSENT), inner)
    elif isinstance(before, (list, tuple)) and isinstance(now, (list, tuple)):
        for at in range(max(len(before), len(now))):
            old, new = (values[at] if at < len(values) else _ABSENT for values in (before, now))
            yield from _differences(old, new, f"{place}[{at}]")
    elif before is _ABSENT or now is _ABSENT or dumps(before) != dumps(now):
        yield place, before, now
