"""Figures that nobody could have measured are unknown, so that every sum of figures is a number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seatrial.core.figures import MOST, figure_of
from seatrial.core.grade import Tally
from seatrial.core.trace import ModelCallEvent, StopReason, Usage
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.core.usage import Price, cost_of_calls


@given(st.none() | st.floats() | st.integers())
def test_a_figure_is_itself_or_unknown_and_a_million_of_it_add_up(value: float | None) -> None:
    known = figure_of(value)
    assert known is None or (known == value and math.isfinite(math.fsum([known] * 1000) * 1000))


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1.7e308, 10**400, None])
def test_what_is_not_finite_negative_or_beyond_measure_is_unknown(value: float | None) -> None:
    assert figure_of(value) is None


def test_a_record_on_file_with_such_a_figure_reads_as_unknown() -> None:
    fields = {"case_id": "c", "status": TrialStatus.PASSED, "stop_reason": StopReason.ANSWERED}
    record = TrialRecord(**fields, cost_usd=1.7e308, judge_cost_usd=1.7e308, latency_ms=1.7e308)
    assert (record.cost_usd, record.judge_cost_usd, record.latency_ms) == (None, None, None)
    assert TrialRecord(**fields, cost_usd=MOST).cost_usd == MOST
    with pytest.raises(ValidationError):
        TrialRecord(**fields, cost_usd="dear")


def test_a_price_that_no_sum_can_hold_makes_the_cost_unknown() -> None:
    call = ModelCallEvent(number=1, model="m", usage=Usage(input=2**50, output=1))
    assert cost_of_calls([call], {"m": Price(input=1e300, output=0)}) is None


def test_a_tally_beyond_measure_is_refused() -> None:
    with pytest.raises(ValidationError):
        Tally(hit=1.7e308, of=1.7e308)
