"""What attempts cost, kept packed and once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.costs import Costs, Spent
from seatrial.core.frozen import defaults_of
from seatrial.core.trial import Tokens, TrialRecord

USD = st.none() | st.floats(allow_nan=False)
COUNT = st.none() | st.integers(0, 2**31)
UNTOLD: Tokens = defaults_of(TrialRecord)["tokens"]
"""Of a record of whose model calls nothing was observed."""
TOKENS = st.just(UNTOLD) | st.builds(Tokens, input=COUNT, output=COUNT, cached=COUNT, reasoning=COUNT)
COSTS = st.tuples(USD, USD, TOKENS)


@given(st.lists(COSTS, max_size=30), st.integers(0, 5))
def test_costs_come_back_as_they_were_however_few_are_shared(
    costs: list[tuple[float, float, Tokens]], few: int
) -> None:
    kept, other = Costs(few), Costs()
    numbers = [kept.add(*cost) for cost in costs]
    again = [other.add_block(kept.block(number)) for number in numbers]
    assert [kept[number] for number in numbers] == costs
    assert [other[number] for number in again] == costs


def test_attempts_that_cost_the_same_have_one_number() -> None:
    kept = Costs()
    assert kept.add(None, 0.0, Tokens()) == kept.add(None, 0.0, UNTOLD) != kept.add(0.0, 0.0, UNTOLD)
    assert len({kept.add(cost, judge, UNTOLD) for cost in (None, 1.0) for judge in (None, 0.0, 1.0)}) == 6


def test_where_each_attempt_has_its_own_costs_no_more_are_looked_for() -> None:
    kept, many = Costs(shared=4), 10
    numbers = [kept.add(float(number), None, Tokens(input=number)) for number in range(many)]
    assert numbers == list(range(many))
    assert kept[many - 1] == Spent(float(many - 1), None, Tokens(input=many - 1))
    assert kept.add(float(many - 1), None, Tokens(input=many - 1)) == many  # is not known again
    assert kept.add(1.0, None, Tokens(input=1)) == 1


def test_tokens_that_are_too_many_for_a_block_are_left_to_the_record() -> None:
    kept = Costs()
    assert kept[kept.add(0.5, 0.0, Tokens(input=2**40))] == Spent(0.5, 0.0, None)
