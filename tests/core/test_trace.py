"""Numbers of tokens: what is no count is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.trace import Usage
from seatrial.core.usage import Price

COUNTS = st.integers(0, 2**53)
NO_COUNTS = (
    st.booleans()
    | st.integers(max_value=-1)
    | st.integers(min_value=2**53 + 1)
    | st.text()
    | st.sampled_from([1.5, -0.5, float("nan"), float("inf"), [], {}, None])
)


@given(COUNTS)
def test_a_count_is_kept(count: int) -> None:
    assert Usage(input=count) == Usage(input=float(count)) == Usage.model_validate({"input": count})
    assert Usage(input=count).input == count


@given(NO_COUNTS)
def test_what_is_no_count_is_unknown_and_nothing_is_reckoned_from_it(value: Any) -> None:
    usage = Usage(input=value, output=5, cached=value, cache_write=value, reasoning=value)
    assert usage == Usage(output=5)
    assert Price(input=1.0, output=1.0).of(usage) is None


@pytest.mark.parametrize("name", ["input", "output", "cached", "cache_write", "reasoning"])
def test_every_kind_of_token_is_counted(name: str) -> None:
    assert getattr(Usage(**{name: -3}), name) is None
    assert getattr(Usage(**{name: 3}), name) == 3
