from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from seatrial.core.case import Case
from seatrial.core.grade import Grade, Verdict
from seatrial.core.ports import Grader
from seatrial.errors import UsageError
from seatrial.graders import graders_for
from seatrial.graders.external import grade_of, grader, own_grader
from traces import context_of, trace_of

HERE = "own_graders_for_tests"


@pytest.fixture(autouse=True)
def _module(monkeypatch: pytest.MonkeyPatch) -> None:
    """These graders, importable as users' own are."""
    import sys
    import types

    module = types.ModuleType(HERE)
    for function in (polite, score, slow, asks_a_model, decorated, broken):
        setattr(module, function.__name__, function)
    module.number = 5  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, HERE, module)


def polite(context: Any) -> tuple[bool, str]:
    return "please" in context.output, "says please"


def score(context: Any, n: float = 1) -> float:
    return n


async def slow(context: Any) -> bool:
    return True


@grader(judge=True)
async def asks_a_model(context: Any) -> Grade:
    return Grade(verdict=Verdict.PASS, cost_usd=0.01)


@grader(name="close", minimum=0.5, advisory=True, needs_answer=False)
def decorated(context: Any) -> float:
    return 0.6


@grader
def broken(context: Any) -> Any:
    raise RuntimeError("no")


def graders_of(*uses: Any, **case: Any) -> tuple[Grader, ...]:
    return graders_for(Case.model_validate({"id": "case", "graders": list(uses), **case}))


def grade(use: Any, output: Any = "yes please") -> Any:
    (only,) = graders_of(use)
    return only.grade(context_of({}, trace_of(output=output), output=output))


def test_a_grader_by_import_path_sees_the_real_object() -> None:
    found = grade(f"{HERE}:polite")
    assert (found.name, found.verdict, found.reason) == (f"{HERE}:polite", "pass", "says please")
    assert grade(f"{HERE}:polite", "now!").verdict == "fail"


def test_a_number_needs_a_minimum() -> None:
    use = {"use": f"{HERE}:score", "with": {"n": 0.7}, "minimum": 0.8}
    found = grade(use)
    assert (found.verdict, found.score, found.reason) == ("fail", 0.7, "0.7, at least 0.8 is needed")
    assert grade({**use, "minimum": 0.7}).verdict == "pass"
    assert grade({**use, "with": {"n": 7}, "minimum": 5}).score == 1.0
    with pytest.raises(TypeError, match="no `minimum`"):
        grade({"use": f"{HERE}:score"})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_the_graders_failure(value: float) -> None:
    with pytest.raises(ValueError, match="a score is a finite number"):
        grade_of(value, minimum=0.5)


@pytest.mark.parametrize("said", [None, "yes", [], {"pass": True}, (True, "a", "b"), ("yes", "x")])
def test_anything_else_is_no_result(said: Any) -> None:
    with pytest.raises(TypeError, match="a grader returns a Grade, a bool"):
        grade_of(said, minimum=0.5)


def test_results_of_every_kind_become_grades() -> None:
    assert grade_of(True, name="x").name == "x"
    assert grade_of((False, None)).reason == ""
    assert grade_of((0.9, "close"), minimum=0.5).reason == "0.9, at least 0.5 is needed: close"
    assert grade_of(Grade(verdict=Verdict.ABSTAIN, reason="?"), name="x").name == "x"


def test_a_scalar_of_another_library_counts_as_what_it_holds() -> None:
    class Scalar:
        shape = ()

        def item(self) -> bool:
            return True

    assert grade_of(Scalar()).verdict == "pass"


async def test_a_grader_that_asks_a_model_says_so_and_what_it_cost() -> None:
    judge, other = graders_of(f"{HERE}:asks_a_model", f"{HERE}:slow")
    assert (judge.judge, other.judge) == (True, False)
    assert (await judge.grade(context_of({}, trace_of()))).cost_usd == 0.01


async def test_async_graders_are_awaited() -> None:
    (only,) = graders_of(f"{HERE}:slow")
    pending = only.grade(context_of({}, trace_of()))
    assert not only.blocking
    assert (await pending).verdict == "pass"  # type: ignore[misc]


def test_the_decorator_says_how_a_grader_counts_and_a_case_may_say_otherwise() -> None:
    (by_author,) = graders_of(f"{HERE}:decorated")
    assert (by_author.name, by_author.required, by_author.needs_answer) == ("close", False, False)
    found = grade({"use": f"{HERE}:decorated", "name": "mine", "minimum": 0.9})
    assert (found.name, found.verdict, found.required) == ("mine", "fail", False)
    assert decorated(None) == 0.6


def test_what_a_grader_raises_is_passed_on() -> None:
    with pytest.raises(RuntimeError):
        grade(f"{HERE}:broken")


def test_a_repeated_grader_gets_a_number_and_a_name_wins() -> None:
    use = f"{HERE}:polite"
    names = [each.name for each in graders_of(use, {"use": use, "name": "kind"}, use, use)]
    assert names == [use, "kind", f"{use}#2", f"{use}#3"]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (f"{HERE}:polit", "did you mean 'polite'"),
        (f"{HERE}:number", "which cannot be called"),
        ("no_such_module_here:x", "no module named"),
        ("unregistered", "unknown grader 'unregistered'"),
        ({"use": f"{HERE}:score", "with": {"m": 1}}, r"cannot be called as grader\(context, \*\*with\)"),
    ],
)
def test_a_grader_that_cannot_be_used_is_a_usage_error(use: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        graders_of(use)


def test_own_grader_of_a_use_is_advisory_when_the_case_says_so() -> None:
    (only,) = graders_of({"use": f"{HERE}:polite", "advisory": True})
    assert not only.required
    assert own_grader(Case.model_validate({"id": "c", "graders": [f"{HERE}:polite"]}).graders[0], name="n").name == "n"


def test_a_grader_may_look_at_a_context_with_a_part_of_it_replaced() -> None:
    context = context_of({}, trace_of(output="a"))
    assert replace(context, output="b").output == "b"
    assert replace(context, output="b").trace == context.trace
