from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.metric import METRICS

UNITS = {
    unit: next(m for m in METRICS.values() if m.unit == unit) for unit in ("share", "points", "count", "ms", "usd")
}


@pytest.mark.parametrize(
    ("unit", "value", "limit", "texts"),
    [
        ("share", 2 / 3, 0.98, ("66.67 %", "98 %")),
        ("share", 0.98, 0.98, ("98 %", "98 %")),
        ("share", 0.979999, 0.98, ("97.9999 %", "98 %")),
        ("share", 1.0, 0.99999, ("100 %", "99.999 %")),
        ("points", 0.010001, 0.01, ("1.0001 points", "1 point")),
        ("ms", 12000.2, 12000, ("12,000.2 ms", "12,000 ms")),
        ("ms", 12001, 12000, ("12,001 ms", "12,000 ms")),
        ("usd", 0.200004, 0.2, ("0.200004 USD", "0.2 USD")),
        ("count", 3, 0, ("3", "0")),
    ],
)
def test_a_figure_and_its_limit_read_differently_unless_they_are_equal(unit, value, limit, texts) -> None:
    metric = UNITS[unit]
    assert (metric.shown(value, limit), metric.shown(limit, value)) == texts


@given(st.sampled_from(sorted(UNITS)), st.floats(0, 1), st.floats(0, 1))
def test_figures_apart_by_more_than_rounding_never_read_equal(unit, value, limit) -> None:
    metric = UNITS[unit]
    if abs(value - limit) > 1e-9:
        assert metric.shown(value, limit) != metric.shown(limit, value)
