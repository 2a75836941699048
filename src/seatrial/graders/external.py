"""Graders that users write: a function `grader(context, **options)`, named by its import path.

A grader returns a Grade, a bool, `(bool, detail)`, or, when it has a `minimum`, a finite number (also as
`(number, detail)`) that passes at or above it. Anything else, NaN and infinity raise TypeError or ValueError, which
the runner records as a GraderFailure. A number in [0, 1] is the score; any other gives score 1 or 0.

    @grader(minimum=0.8)
    def similarity(context, reference=""):
        return ratio(context.output, reference)
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, overload

from seatrial.core.case import GraderUse
from seatrial.core.encoding import to_json
from seatrial.core.grade import Grade, Verdict
from seatrial.core.matching import show
from seatrial.core.ports import GradingContext
from seatrial.errors import UsageError
from seatrial.registry import Registry, load_object

__all__ = ["GRADERS", "GraderOptions", "OwnGrader", "grade_of", "grader", "own_grader"]

GRADERS = Registry("grader", {})
"""Short names for own graders, from entry points of the group `seatrial.grader`; import paths always work."""

_MARK = "__seatrial_grader__"
Function = Callable[..., Any]


@dataclass(frozen=True)
class GraderOptions:
    """What a decorated grader says of itself; a case's own settings win."""

    name: str | None = None
    """None: its import path."""
    minimum: float | None = None
    """For graders that return a number: passes at or above it."""
    advisory: bool = False
    """True: reported, never decisive."""
    needs_answer: bool = True
    """False: it grades calls or the outcome, and runs also when the agent gave no answer."""
    judge: bool = False
    """True: it asks a model, so the project's limit on judges holds, and its Grade says what that cost."""


@overload
def grader(function: Function, /) -> Function: ...
@overload
def grader(
    *,
    name: str | None = None,
    minimum: float | None = None,
    advisory: bool = False,
    needs_answer: bool = True,
    judge: bool = False,
) -> Callable[[Function], Function]: ...
def grader(function: Function | None = None, /, **options: Any) -> Any:
    """Say how a grader counts, where it is written. Options: name, minimum, advisory, needs_answer,
    judge.

    Gives the function back unchanged, so it can be called and tested like any other.
    """

    def mark(marked: Function) -> Function:
        setattr(marked, _MARK, GraderOptions(**options))
        return marked

    return mark if function is None else mark(function)


@dataclass(frozen=True)
class OwnGrader:
    """A user's grader as the runner sees it."""

    name: str
    function: Function
    required: bool = True
    needs_answer: bool = True
    minimum: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    judge: bool = False

    @property
    def blocking(self) -> bool:
        """Whether it may block its thread: all but async functions."""
        return not inspect.iscoroutinefunction(self.function)

    def grade(self, context: GradingContext) -> Grade | Awaitable[Grade]:
        """The grade, or an awaitable of it when the function is async."""
        said = self.function(context, **self.options)
        return self._awaited(said) if inspect.isawaitable(said) else self._read(said)

    async def _awaited(self, said: Awaitable[Any]) -> Grade:
        return self._read(await said)

    def _read(self, said: Any) -> Grade:
        grade = grade_of(said, name=self.name, minimum=self.minimum)
        return grade.model_copy(update={"required": self.required and grade.required})


def grade_of(said: Any, *, name: str = "", minimum: float | None = None) -> Grade:
    """What a user's grader or check returned, as a Grade called `name`.

    Raises TypeError for what is no result, ValueError for a number that is not finite.
    """
    if isinstance(said, Grade):
        return said.model_copy(update={"name": name or said.name})
    value, detail = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
    value = to_json(value) if hasattr(value, "item") else value  # numpy's own bool and float
    if isinstance(value, bool):
        return Grade(name=name, verdict=Verdict.PASS if value else Verdict.FAIL, reason=_text(detail))
    if isinstance(value, (int, float)):
        return _number_grade(name, value, minimum, _text(detail))
    raise TypeError(f"a grader returns a Grade, a bool, (bool, detail) or a number, not {_described(said)}")


def _text(detail: Any) -> str:
    return "" if detail is None else str(detail)


def _described(said: Any) -> str:
    return "None" if said is None else f"{show(said)} ({type(said).__name__})"


def _number_grade(name: str, value: float, minimum: float | None, detail: str) -> Grade:
    if not math.isfinite(value):
        raise ValueError(f"a grader returned {value}; a score is a finite number")
    if minimum is None:
        raise TypeError(f"a grader returned the number {value}, but no `minimum` says from where on it passes")
    verdict = Verdict.PASS if value >= minimum else Verdict.FAIL
    reason = f"{show(value)}, at least {show(minimum)} is needed" + (f": {detail}" if detail else "")
    return Grade(name=name, verdict=verdict, score=value if 0 <= value <= 1 else None, reason=reason)


def own_grader(use: GraderUse, *, name: str) -> OwnGrader:
    """The grader that a case names; `name` is what it is called when neither the case nor its author says.

    Raises UsageError when there is none, it cannot be called, or it does not take these options.
    """
    function = _load(use.use)
    said: GraderOptions = getattr(function, _MARK, GraderOptions())
    _check_options(function, use)
    return OwnGrader(
        name=use.name or said.name or name,
        function=function,
        required=not (use.advisory or said.advisory),
        needs_answer=said.needs_answer,
        minimum=said.minimum if use.minimum is None else use.minimum,
        options=use.options,
        judge=said.judge,
    )


def _load(path: str) -> Function:
    function = load_object(path) if ":" in path else GRADERS.load(path)
    if not callable(function):
        raise UsageError(f"grader {path!r} is {_described(function)}, which cannot be called")
    return function  # type: ignore[no-any-return]


def _check_options(function: Function, use: GraderUse) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in callables without one
        return
    try:
        signature.bind(None, **use.options)
    except TypeError as error:
        raise UsageError(f"grader {use.use!r} cannot be called as grader(context, **with): {error}") from None
