"""A function that answers calls of a tool: the names of its arguments."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environment.callee import Callee, is_awaitable

NAMES = ["a", "b", "c", "d"]
SHAPES: list[Callable[..., Any]] = [
    lambda: None,
    lambda a: None,
    lambda a, b=1: None,
    lambda a=1, *, b: None,
    lambda a, *, b=1, c: None,
    lambda a, /, b: None,
    lambda a, *b, c=1: None,
    lambda a, **b: None,
    lambda *, a, **rest: None,
    lambda a, /, b=2, *c, d, **rest: None,
    partial(lambda a, b, c=3: None, 1),
    partial(lambda a, b, c=3: None, b=2),
]


def as_python_binds(function: Callable[..., Any], args: tuple[int, ...], kwargs: dict[str, int]) -> dict[str, Any]:
    """Arguments by name, with those that `**` takes by their own."""
    signature = inspect.signature(function)
    bound = dict(signature.bind(*args, **kwargs).arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound.update(bound.pop(parameter.name, {}))
    return bound


def outcome(bind: Callable[..., dict[str, Any]], args: list[int], kwargs: dict[str, int]) -> object:
    """The named arguments in their order, or what Python says does not fit."""
    try:
        return list(bind(tuple(args), kwargs).items())
    except TypeError as error:
        return str(error)


@given(
    st.sampled_from(SHAPES), st.lists(st.integers(), max_size=4), st.dictionaries(st.sampled_from(NAMES), st.integers())
)
def test_arguments_are_named_as_python_binds_them(
    function: Callable[..., Any], args: list[int], kwargs: dict[str, int]
) -> None:
    named, bound = Callee("tool", function).named, partial(as_python_binds, function)
    assert outcome(named, args, kwargs) == outcome(bound, args, kwargs)


def test_what_takes_only_names_takes_any_of_them_and_no_places() -> None:
    callee = Callee("search", dict, named_only=True)
    assert callee.named((), {"query": "x"}) == {"query": "x"}
    with pytest.raises(TypeError, match="name the arguments of search"):
        callee.named((1,), {})


async def waits() -> int:
    return 1


class Waiting:
    def __await__(self) -> Any:
        return waits().__await__()


def test_awaitables_are_told_from_other_results() -> None:
    coroutine = waits()
    assert is_awaitable(coroutine)
    assert is_awaitable(Waiting())
    assert not any(is_awaitable(result) for result in ("x", 1, None, {}, [], object(), Waiting))
    assert asyncio.run(coroutine) == 1
