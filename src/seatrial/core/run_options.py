"""What options of a run may be, whoever gives them: the command line, Python, environment variables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from seatrial.core.case import Risk
from seatrial.core.ids import readable
from seatrial.core.project import AgentSpec, Project
from seatrial.errors import UsageError

__all__ = ["OPTIONS", "OptionRule", "check_options"]

_LONGEST = 80


@dataclass(frozen=True)
class OptionRule:
    """What one option may be. Nothing is converted: a number as text is none."""

    what: str
    """In words."""
    holds: Callable[[Any], bool]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value: Any) -> bool:
    return (_whole(value) or isinstance(value, float)) and abs(value) <= sys.float_info.max


def _several(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value)


def _one_of(*words: str) -> OptionRule:
    return OptionRule(f"{', '.join(words[:-1])} or {words[-1]}", lambda value: value in words)


_COUNT = OptionRule("a whole number of 1 or more", lambda value: _whole(value) and value >= 1)
_AMOUNT = OptionRule("a number above 0", lambda value: _finite(value) and value > 0)
_TEXT = OptionRule("text", lambda value: isinstance(value, str))
_TEXTS = OptionRule("text or a list of it", _several)
_SWITCH = OptionRule("true or false", lambda value: isinstance(value, bool))
_RISK = _one_of(*get_args(Risk))
_PLACE = OptionRule("a path", lambda value: isinstance(value, Path))

OPTIONS: Mapping[str, OptionRule] = {
    **dict.fromkeys(("project", "output", "cassettes"), _PLACE),
    **dict.fromkeys(("select", "suite", "tag", "set"), _TEXTS),
    **dict.fromkeys(("keyword", "build", "build_id", "executor", "scheduler"), _TEXT),
    **dict.fromkeys(("trials", "concurrency"), _COUNT),
    **dict.fromkeys(("timeout_s", "max_cost", "max_time"), _AMOUNT),
    **dict.fromkeys(("resume", "debug", "allow_unknown_cost", "stop_when_decided"), _SWITCH),
    "risk": OptionRule(_RISK.what, lambda value: _several(value) and all(map(_RISK.holds, value))),
    "seed": OptionRule("a whole number", _whole),
    "tools": _one_of(*get_args(AgentSpec.model_fields["tools"].annotation)),
    "isolation": _one_of(*get_args(Project.model_fields["isolation"].annotation)),
    "cassette_mode": _one_of("off", "record", "replay"),
}
"""By the names of Python."""


def check_options(given: Mapping[str, Any]) -> None:
    """Raises UsageError for the first option that is not what it may be; None is an option that was not given."""
    for name, value in given.items():
        if value is not None and not OPTIONS[name].holds(value):
            raise UsageError(f"{name} should be {OPTIONS[name].what}, not {_shown(value)}")


def _shown(value: Any) -> str:
    text = readable(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
