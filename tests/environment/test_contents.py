"""What an object holds is read deep enough to see what leaks, and two readings say where they differ."""

from __future__ import annotations

import functools
import itertools
import random
from collections import deque
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environment.contents import content, differences

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Store:
    shared: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        self.items = [1]

    @functools.cache  # noqa: B019
    def look(self, key: str) -> str:
        return key


def collects(item: int, into: list[int] = []) -> list[int]:  # noqa: B006
    into.append(item)
    return into


def counter() -> Any:
    count = [0]

    def step() -> int:
        count[0] += 1
        return count[0]

    return step


def changed_by(value: object, change: Any) -> list[str]:
    before = content(value)
    assert content(value) == before
    change()
    return list(differences(before, content(value)))


@pytest.mark.parametrize(
    ("value", "change", "told"),
    [
        ({"a": 1}, lambda v: v.update(b=2), ["b: + 2"]),
        ({"a": {"b": 1}}, lambda v: v["a"].clear(), ["a.b: - 1"]),
        ([1, 2], lambda v: v.append(3), ["[1,2] -> [1,2,3]"]),
        ([{"n": 1}], lambda v: v[0].update(n=2), ["[0].n: 1 -> 2"]),
        ({"x"}, lambda v: v.add("y"), ['["\\"x\\""] -> ["\\"x\\"","\\"y\\""]']),
        (deque([1]), lambda v: v.append(2), ["[1] -> [1,2]"]),
    ],
)
def test_changes_are_told_with_their_path(value: Any, change: Any, told: list[str]) -> None:
    assert changed_by(value, lambda: change(value)) == told


def test_attributes_of_objects_and_classes_are_seen() -> None:
    store = Store()
    assert changed_by(store, lambda: store.items.append(2)) == ["items: [1] -> [1,2]"]
    assert changed_by(Store, lambda: Store.shared.update(a=1)) == ["shared.a: + 1"]
    Store.shared.clear()


def test_state_of_functions_is_seen() -> None:
    step = counter()
    assert changed_by(collects, lambda: collects(1)) != []
    assert changed_by(step, step) != []
    cached = functools.lru_cache(lambda key: key)
    assert changed_by(cached, lambda: cached("a")) == ["entries: 0 -> 1", "misses: 0 -> 1"]
    assert changed_by(Store, lambda: Store().look("a")) != []
    Store.look.cache_clear()


def test_generators_of_chance_and_counters_are_seen() -> None:
    chance, count = random.Random(1), itertools.count()
    assert changed_by(chance, chance.random) != []
    assert changed_by(count, lambda: next(count)) != []


def test_cycles_hostile_and_huge_objects_are_read_to_an_end() -> None:
    class Hostile(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError

    cycle: list[Any] = []
    cycle.append(cycle)
    assert content(cycle) == ["<list>"]
    assert content(Hostile(a=1)) == "<Hostile: RuntimeError>"
    assert content([[n] for n in range(100_000)])[-1] == "<list>"


@given(DATA)
def test_equal_data_has_no_differences_and_other_data_has(data: Any) -> None:
    before = content({"data": data})
    assert list(differences(before, content({"data": data}))) == []
    assert list(differences(before, content({"data": [data]}))) != []
