"""The kit itself: it passes an honest adapter and finds what is wrong with every other."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.broken_adapters import (
    BROKEN,
    PARALLEL,
    DeclaresWhatItsFrameworkHasNot,
    NumbersStepsByTool,
    SeesAnswersOnly,
    adapter_with,
)
from conformance.reference_adapter import ReferenceFramework
from seatrial.core.trace import Observable
from seatrial.errors import UsageError
from seatrial.testing import conformance
from seatrial.testing.conformance import Outcome, signals


@pytest.mark.parametrize("situation", conformance.SITUATIONS)
def test_an_honest_adapter_passes(situation: str) -> None:
    result = conformance.prove(ReferenceFramework(), situation)
    assert result.outcome is Outcome.PASSED


def test_there_are_many_ways_to_be_wrong() -> None:
    assert len(BROKEN) >= 12


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_adapter_is_caught_where_it_is_wrong_and_nowhere_else(
    broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken.caught_by & PARALLEL or hasattr(broken, "waits_in_vain"):
        monkeypatch.setattr(signals, "LIMIT_S", 0.05)
    report = conformance.check(ReferenceFramework(adapter_with(broken), absent=getattr(broken, "absent", {})))
    failed = {result.situation for result in report.results if result.outcome is Outcome.FAILED}
    assert failed == broken.caught_by, str(report)


NOT_FOR_THE_BLIND = frozenset(
    {"approval_denied", "approval_edited", "approval_unanswered", "stand_in", "injected_fault"}
)
"""What it cannot even do: its tools do not ask the trial."""


@pytest.mark.parametrize("situation", [name for name in conformance.SITUATIONS if name not in NOT_FOR_THE_BLIND])
def test_what_an_adapter_does_not_observe_never_passes(situation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "LIMIT_S", 0.05)  # nobody records the end that the parallel calls wait for
    result = conformance.prove(ReferenceFramework(adapter_with(SeesAnswersOnly)), situation)
    answers = ("answer_only", "three_turns", "isolation", "twenty_trials", "streaming", "model_error", "timeout")
    assert result.outcome is (Outcome.PASSED if situation in answers else Outcome.NOT_OBSERVED)


def test_a_blind_adapter_that_claims_calls_is_caught() -> None:
    claiming = type("Claiming", (SeesAnswersOnly,), {"observes": frozenset({Observable.OUTPUT, Observable.TOOL_CALLS})})
    with pytest.raises(AssertionError, match="two_calls: number of tool calls: expected 2, seen 0"):
        conformance.prove(ReferenceFramework(adapter_with(claiming)), "two_calls")


def test_what_a_framework_has_not_is_absent_with_its_reason() -> None:
    framework = ReferenceFramework(absent={"streaming": "it never streams"})
    result = conformance.prove(framework, "streaming")
    assert (result.outcome, result.reason) == (Outcome.ABSENT, "it never streams")


def test_what_is_declared_must_be_shown_by_some_situation() -> None:
    one = ReferenceFramework(absent={"approval_denied": "nobody says no"})
    assert conformance.prove(one, "approval_denied").outcome is Outcome.ABSENT
    none = ReferenceFramework(
        adapter_with(DeclaresWhatItsFrameworkHasNot), absent=DeclaresWhatItsFrameworkHasNot.absent
    )
    with pytest.raises(AssertionError, match="observes handoffs: expected declared, so shown by some situation"):
        conformance.prove(none, "handoff")
    assert not conformance.check(none).passed


def test_what_is_not_declared_may_be_absent_everywhere() -> None:
    framework = ReferenceFramework(adapter_with(SeesAnswersOnly), absent=DeclaresWhatItsFrameworkHasNot.absent)
    assert conformance.prove(framework, "handoff").outcome is Outcome.ABSENT


def test_an_absent_situation_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match=r"no situation 'streamin'.*streaming"):
        conformance.check(ReferenceFramework(absent={"streamin": "it never streams"}))


def test_a_problem_names_what_was_expected_and_seen() -> None:
    with pytest.raises(AssertionError) as caught:
        conformance.prove(ReferenceFramework(adapter_with(NumbersStepsByTool)), "parallel_calls")
    assert "parallel_calls: tool call 2 (weigh): step (number of the model call" in str(caught.value)
    assert "expected 2, seen 3" in str(caught.value)


async def test_the_kit_works_inside_a_running_loop() -> None:
    assert conformance.prove(ReferenceFramework(), "answer_only").outcome is Outcome.PASSED
