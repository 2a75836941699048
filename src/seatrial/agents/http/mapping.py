"""What a service is sent, and where in its response everything stands: `input:` and `output:` of the agent.

```yaml
agent:
  target: "http://127.0.0.1:8000/ask"
  headers: {Authorization: "Bearer ${SERVICE_TOKEN}", X-Session: $conversation}
  input: {question: $message, customer: $input.user_id, session: $conversation}
  output:
    answer: reply.text
    tool_calls: {path: steps, name: tool, arguments: args, result: output}
    usage: {path: meta.tokens, input: prompt, output: completion}
```

A text of `input` and `headers` that begins with `$` is one of `$message`, `$messages` (what both said so far, as
`{role, content}`), `$input`, `$conversation` (an id of the trial's own), `$turn`, `$trial` (what a command's `hello`
tells, and `callback`), `$config`, `$approvals` (the decisions, once the service asked), with a path after a dot where
it has parts; a part that is missing is null. `$$` at a text's start is a dollar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from seatrial.agents.expressions import check_path, each_replaced, expressions_in, read_path
from seatrial.agents.http.client import Response, ServiceError
from seatrial.agents.messages import meant_tokens
from seatrial.core.agent_run import AgentRun, HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import dumps, to_json
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.reports import check_handoff, check_tool_call, figure, usage_of
from seatrial.errors import UsageError, did_you_mean

__all__ = ["Reading", "Template", "Wanted"]

_KNOWN = ("message", "messages", "input", "conversation", "turn", "trial", "config", "approvals")
_BY_DEFAULT = {name: f"${name}" for name in ("message", "input", "conversation", "turn", "trial", "approvals")}
_ITEMS = {
    "tool_calls": tuple(one.name for one in fields(ToolCall)),
    "handoffs": tuple(one.name for one in fields(HandoffEvent)),
    "usage": tuple(one.name for one in fields(ModelCall)),
    "approvals": ("action", "arguments", "id"),
}
"""What is a list of objects, with their fields."""
_WHOLE = ("answer", "outcome", "safety_events", "events", "cost_usd", "latency_ms", "stop_reason")
_SHOWN = 500
"""Characters of an error that a message shows."""
_OBSERVED = {
    "tool_calls": (Observable.TOOL_CALLS,),
    "handoffs": (Observable.HANDOFFS,),
    "usage": (Observable.MODEL_CALLS, Observable.USAGE),
    "outcome": (Observable.OUTCOME,),
    "safety_events": (Observable.SAFETY,),
    "approvals": (Observable.APPROVALS,),
}


class Template:
    """The body of requests. UsageError when it names what there is not."""

    def __init__(self, given: Any = None) -> None:
        self.body = _BY_DEFAULT if given is None else given
        for text in expressions_in(self.body):
            name, _, path = text.removeprefix("$").partition(".")
            if name not in _KNOWN:
                raise UsageError(f"agent input: {text!r} is not known; {did_you_mean(name, list(_KNOWN))}")
            if path:
                check_path(path)

    def names(self, name: str) -> bool:
        """Whether the body holds `$name` or a part of it."""
        return any(text.removeprefix("$").partition(".")[0] == name for text in expressions_in(self.body))

    def filled(self, scope: Mapping[str, Any]) -> Any:
        """The body with every expression replaced by what it stands for."""
        return each_replaced(self.body, lambda text: _looked_up(scope, text[1:]))


def _looked_up(value: Any, path: str) -> Any:
    """What stands at a path of JSON data; None where it is missing."""
    try:
        found = read_path(value, path)
    except LookupError:
        return None
    return None if callable(found) else found  # a method of a list or text is no data


@dataclass(frozen=True)
class Reading:
    """What one response says."""

    run: AgentRun
    approvals: Sequence[Mapping[str, Any]] = ()
    """What it asks for before it goes on."""
    events: Sequence[Any] = ()
    """Messages as a command sends them."""
    stop_reason: StopReason = StopReason.ANSWERED


@dataclass(frozen=True)
class _Place:
    path: str
    parts: Mapping[str, str] = field(default_factory=dict)
    """Paths within an item, by field; empty: items have the fields' own names."""


class Wanted:
    """Where everything stands in a response. UsageError when that makes no sense."""

    def __init__(self, given: Any = None) -> None:
        self._by_name = given is None
        if isinstance(given, str):
            given = {"answer": given}
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"agent output: {given!r} is neither a path into the response nor a mapping of them")
        self._places = {key: _place(key, value) for key, value in (given or {}).items()}

    @property
    def names(self) -> frozenset[str]:
        """What the response is asked for."""
        return frozenset(self._places)

    @property
    def observes(self) -> frozenset[Observable]:
        """Evidence that is seen in every response, because it is said where it stands."""
        return frozenset(kind for key in self._places for kind in _OBSERVED.get(key, ()))

    def read(self, response: Response) -> Reading:
        """What a response says; a stream's texts are joined and its lists put together.

        Raises ServiceError naming what is not where it should be, and for an error that a stream tells of.
        """
        responses = response.parts
        if response.streamed and not self._maps_error():
            _check_no_error(responses)
        if self._by_name:
            return self._read_by_name(responses)
        found = {key: _joined([self._at(place, one) for one in responses]) for key, place in self._places.items()}
        if "answer" in self._places and found["answer"] is None and not found.get("approvals"):
            self._check_answer(responses)
        return _reading(found, None if "answer" in self._places else responses[-1] if responses else None)

    def _maps_error(self) -> bool:
        """Whether `error` of a response is something that was asked for."""
        paths = [
            path for place in self._places.values() for path in ((place.path,) if place.path else place.parts.values())
        ]
        return any(path.partition(".")[0].partition("[")[0] == "error" for path in paths)

    def _read_by_name(self, responses: Sequence[Any]) -> Reading:
        names = (*_ITEMS, *_WHOLE)
        found = {
            name: _joined([one[name] for one in responses if isinstance(one, Mapping) and name in one])
            for name in names
        }
        known = any(value is not None for value in found.values())
        return _reading(found, None if known else responses[-1] if responses else None)

    def _at(self, place: _Place, response: Any) -> Any:
        value = _looked_up(response, place.path)
        if not place.parts or value is None:
            return value
        if isinstance(value, list):
            return [_parted(item, place.parts) for item in value]
        return _parted(value, place.parts)

    def _check_answer(self, responses: Sequence[Any]) -> None:
        """A missing answer is no answer of null."""
        try:
            read_path(responses[-1] if responses else None, self._places["answer"].path)
        except LookupError as error:
            raise ServiceError(f"agent output: the response has no answer at {error}") from error


def _check_no_error(events: Sequence[Any]) -> None:
    """A stream that has begun well has no other way to say that it failed."""
    for event in events:
        if isinstance(event, Mapping) and event.get("error"):
            raise ServiceError(f"an event of the stream is an error: {dumps(to_json(event['error']))[:_SHOWN]}")


def _parted(item: Any, parts: Mapping[str, str]) -> dict[str, Any]:
    found = {name: _looked_up(item, path) for name, path in parts.items()}
    return {name: value for name, value in found.items() if value is not None}


def _place(key: str, value: Any) -> _Place:
    if key not in _ITEMS and key not in _WHOLE:
        raise UsageError(f"agent output: there is no {key!r}; {did_you_mean(str(key), [*_ITEMS, *_WHOLE])}")
    if isinstance(value, Mapping) and key in _ITEMS:
        parts = {str(name): path for name, path in value.items() if name != "path"}
        for name in parts:
            if name not in _ITEMS[key]:
                raise UsageError(f"agent output.{key}: there is no {name!r}; {did_you_mean(name, list(_ITEMS[key]))}")
        place = _Place(value.get("path", ""), parts)
    else:
        place = _Place(value)
    for path in (place.path, *place.parts.values()):
        if not isinstance(path, str):
            raise UsageError(f"agent output.{key}: {path!r} is no path into the response")
        check_path(path)
    return place


def _joined(values: Sequence[Any]) -> Any:
    """One value of several: texts and lists one after the other, of anything else the last."""
    given = [value for value in values if value is not None]
    if len(given) > 1 and all(isinstance(value, str) for value in given):
        return "".join(given)
    if len(given) > 1 and all(isinstance(value, list) for value in given):
        return [item for value in given for item in value]
    return given[-1] if given else None


def _reading(found: Mapping[str, Any], whole: Any) -> Reading:
    calls, handoffs = _items(found, "tool_calls", ToolCall), _items(found, "handoffs", HandoffEvent)
    run = AgentRun(
        whole if whole is not None else found.get("answer"),
        tool_calls=calls,
        handoffs=handoffs,
        outcome=found.get("outcome") or {},
        safety_events=found.get("safety_events") or (),
        usage=_items(found, "usage", ModelCall),
        latency_ms=_figure(found, "latency_ms"),
        estimated_cost_usd=_figure(found, "cost_usd"),
    )
    return Reading(run, _listed(found, "approvals"), _listed(found, "events"), _stop_reason(found.get("stop_reason")))


def _figure(found: Mapping[str, Any], key: str) -> float | None:
    try:
        return figure(found.get(key), f"{key} of the response")
    except (TypeError, ValueError) as error:
        raise ServiceError(str(error)) from error


def _stop_reason(said: Any) -> StopReason:
    known = [StopReason.ANSWERED.value, StopReason.MAX_STEPS.value, StopReason.WAITING_APPROVAL.value]
    if said is not None and said not in known:
        raise ServiceError(f"stop_reason of the response cannot be {said!r}; {did_you_mean(str(said), known)}")
    return StopReason(said or StopReason.ANSWERED)


def _listed(found: Mapping[str, Any], key: str) -> list[Any]:
    value = found.get(key)
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    for place, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise ServiceError(f"{key}[{place}] of the response is no object but {item!r}")
    return items


def _items(found: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    items = []
    for place, item in enumerate(_listed(found, key)):
        given = _own_names(item)
        for name in given:
            if name not in _ITEMS[key]:
                known = (meant_tokens if key == "usage" else did_you_mean)(str(name), list(_ITEMS[key]))
                raise ServiceError(f"{key}[{place}] of the response has the unknown field {name!r}; {known}")
        try:
            items.append(kind(**given))
            _CHECKS[key](items[-1])
        except (TypeError, ValueError) as error:
            said = str(error).removeprefix(f"{kind.__name__}.")
            raise ServiceError(f"{key}[{place}] of the response: {said}") from error
    return items


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "tool_calls": check_tool_call,
    "handoffs": check_handoff,
    "usage": usage_of,
}


def _own_names(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call as chat completions write it, by the names used here."""
    function = item.get("function")
    if isinstance(function, Mapping):
        return {"name": function.get("name"), "arguments": function.get("arguments"), "call_id": item.get("id")}
    given = dict(item)
    if "id" in given:
        given["call_id"] = given.pop("id")
    return given
