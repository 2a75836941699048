"""Faults at a tool's boundary, as a fixture scripts them.

Faults are tried in the order written. Latency adds up; the first error raises; results pass through every result
fault. Whether a fault with a probability hits is drawn from the trial's seed, the fault's position and the number of
the call, so it is the same in every order of threads.

- `error`: `timeout` raises TimeoutError, `Type: message` the builtin exception of that name, anything else
  RuntimeError. Before the tool's body, so that it has no effect; after it with `after: true`.
- `rate_limit: n`: after n calls of the tool every further one raises RateLimitError.
- `latency_ms`: waits, without blocking other trials where the tool is async.
- `result`: `truncated` (half of a text or list, a mapping's JSON cut in the middle), `malformed` (text that is no
  JSON), `empty` (nothing, of the same type), `stale` (what the tool's call before gave; without one the result stays),
  `duplicate` (a list or text twice over, else a list of the result twice).
"""

from __future__ import annotations

import builtins
import copy
import random
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.core.encoding import dumps, to_json
from seatrial.core.fixture import FaultSpec
from seatrial.environment.recorder import Recorder

__all__ = ["Faults", "FaultyCall", "RateLimitError", "exception_of"]


class RateLimitError(RuntimeError):
    """A tool was called more often than a `rate_limit` fault allows."""


def exception_of(text: str) -> Exception:
    """The exception that `timeout`, `Type: message` or a message stands for.

    Only names of builtin exceptions are types; with any other the whole text is a RuntimeError's message.
    """
    name, _, message = (part.strip() for part in text.partition(":"))
    if name == "timeout":
        return TimeoutError(message or "the tool timed out")
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message) if message else kind()
        except TypeError:  # some need more than a message, such as UnicodeDecodeError
            return RuntimeError(text)
    return RuntimeError(text)


class Faults:
    """The faults of one trial, with how often each tool was called."""

    def __init__(self, specs: Iterable[FaultSpec], seed: int) -> None:
        self._specs = tuple(specs)
        self._seed = seed
        self._calls: dict[str, int] = defaultdict(int)
        self._last: dict[str, Any] = {}
        self._lock = threading.Lock()

    def concern(self, tool: str) -> bool:
        """Whether any fault is about this tool."""
        return bool(self._specs) and any(spec.tool == tool for spec in self._specs)

    def begin(self, tool: str) -> tuple[FaultSpec, ...]:
        """Count a call of `tool` and give the faults that hit it."""
        with self._lock:
            self._calls[tool] += 1
            call = self._calls[tool]
        return tuple(spec for place, spec in enumerate(self._specs) if self._hits(spec, place, tool, call))

    def _hits(self, spec: FaultSpec, place: int, tool: str, call: int) -> bool:
        if spec.tool != tool or spec.on_call not in (None, call):
            return False
        if spec.rate_limit is not None and call <= spec.rate_limit:
            return False
        return spec.probability >= 1 or self._drawn(place, call) < spec.probability

    def _drawn(self, place: int, call: int) -> float:
        return random.Random(f"{self._seed}/{place}/{call}").random()  # noqa: S311  chance of a test, no secret

    def swap_last(self, tool: str, result: Any) -> tuple[bool, Any]:
        """Whether the tool gave a result before, and which; `result` is the last one from now on."""
        if not any(spec.tool == tool and spec.result == "stale" for spec in self._specs):
            return False, None
        with self._lock:
            known, last = tool in self._last, self._last.get(tool)
            self._last[tool] = copy.deepcopy(result)
        return known, last


@dataclass(frozen=True)
class FaultyCall:
    """The faults of one call, applied around the tool's body and recorded as they take effect."""

    tool: str
    specs: tuple[FaultSpec, ...]
    faults: Faults
    recorder: Recorder
    number: int | None = None
    """Event number of the tool call, where it is known."""

    def pause_s(self, *, after: bool) -> float:
        """Seconds to wait before (or after) the body."""
        slow = [s.latency_ms for s in self.specs if s.latency_ms is not None and s.after is after]
        for latency in slow:
            self._record("latency", latency_ms=latency)
        return sum(slow) / 1000

    def check(self, *, after: bool) -> None:
        """Raise the first error that hits before (or after) the body."""
        for spec in self.specs:
            if spec.after is after and spec.error is not None:
                error = exception_of(spec.error)
                self._record("timeout" if isinstance(error, TimeoutError) else "error", error=spec.error)
                raise error
            if spec.after is after and spec.rate_limit is not None:
                self._record("rate_limit", limit=spec.rate_limit)
                raise RateLimitError(f"rate limit exceeded: {spec.rate_limit} calls of {self.tool} are allowed")

    def delivered(self, result: Any) -> Any:
        """What the agent gets of the body's result. Raises the errors that hit after the body."""
        self.check(after=True)
        known, last = self.faults.swap_last(self.tool, result)
        for spec in self.specs:
            if spec.result == "stale":
                result = self._altered("stale", last) if known else result
            elif spec.result is not None:
                result = self._altered(spec.result, _ALTERED[spec.result](result))
        return result

    def _altered(self, fault: str, result: Any) -> Any:
        self._record(fault)
        return result

    def _record(self, fault: str, **details: Any) -> None:
        self.recorder.fault(self.tool, fault, call=self.number, details=details or None)


def _text(result: Any) -> str:
    return result if isinstance(result, str) else dumps(to_json(result))


def _truncated(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return result[: len(result) // 2]
    text = _text(result)
    return text[: len(text) // 2]


def _malformed(result: Any) -> str:
    text = _text(result)
    return '{"result": ' + dumps(text[: max(1, len(text) // 2)])[:-1]


def _empty(result: Any) -> Any:
    if isinstance(result, (str, list, tuple, dict)):
        return type(result)()
    return {} if isinstance(result, Mapping) else None


def _duplicate(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return result * 2
    return f"{result}\n{result}" if isinstance(result, str) else [result, copy.deepcopy(result)]


_ALTERED = {"truncated": _truncated, "malformed": _malformed, "empty": _empty, "duplicate": _duplicate}
