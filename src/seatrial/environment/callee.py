"""A function that answers calls of a tool, and what is found out about it once: whether it is async, its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any

__all__ = ["Callee", "is_async", "is_awaitable"]

Function = Callable[..., Any]

_VALUES = (str, bytes, int, float, dict, list, tuple, set, type(None))
"""What most functions give; telling an awaitable from others takes longer."""


def is_async(function: Function) -> bool:
    """Whether calling it gives an awaitable, as far as one can tell without calling it."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def is_awaitable(result: Any) -> bool:
    """`inspect.isawaitable`."""
    return type(result) not in _VALUES and inspect.isawaitable(result)


class Callee:
    """One function. `named_only`: it takes any arguments that have names, and no others."""

    def __init__(self, name: str, function: Function, *, named_only: bool = False) -> None:
        self.function = function
        self._name = name
        self._named_only = named_only

    @cached_property
    def asynchronous(self) -> bool:
        """Whether calling it gives an awaitable, as far as one can tell without calling it."""
        return is_async(self.function)

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, as the call names them: without defaults, `**` arguments by their own names.

        Raises TypeError when they do not fit the signature, or have no names.
        """
        names = self._names
        if names is not None:
            return names.of(args, kwargs)
        if args:
            raise TypeError(f"name the arguments of {self._name}: its signature is not known")
        return dict(kwargs)

    @cached_property
    def _names(self) -> _Names | None:
        try:
            return None if self._named_only else _Names(inspect.signature(self.function))
        except ValueError:  # some builtins tell nothing
            return None


class _Names:
    """The parameters of a signature, for naming the arguments of many calls."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        parameters = signature.parameters.values()
        self._order = {parameter.name: None for parameter in parameters}
        self._by_place = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
        self._needed = {each.name for each in parameters if each.default is Parameter.empty}
        self._rest = next((each.name for each in parameters if each.kind is Parameter.VAR_KEYWORD), None)
        keyword_only = sum(each.kind is Parameter.KEYWORD_ONLY for each in parameters)
        self._plain = len(self._by_place) + keyword_only == len(parameters)
        """Whether every argument has a name that a call may use: a tool's usual case."""

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, in the order of the parameters. TypeError when they do not fit."""
        if self._plain and len(args) <= len(self._by_place):
            named = {**dict(zip(self._by_place, args, strict=False)), **kwargs} if args else kwargs
            once = len(named) == len(args) + len(kwargs)
            if once and self._needed <= named.keys() <= self._order.keys():
                return {name: named[name] for name in self._order if name in named}
        return self._bound(args, kwargs)

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = dict(self._signature.bind(*args, **kwargs).arguments)
        if self._rest is not None:
            bound.update(bound.pop(self._rest, {}))
        return bound
