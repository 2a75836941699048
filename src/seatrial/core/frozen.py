"""What every file format and record shares: immutable models that refuse unknown keys, and words of a fixed list."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict

__all__ = ["Frozen", "Word", "defaults_of"]

_Make = Callable[[], Any]


class Word(StrEnum):
    """One word of a fixed list. Equal to its text, and hashed as that: several times as fast as other enums.

    Taking one from its list is slow where it is done for every trial: such a module has a name of its own for it.
    """

    __hash__ = str.__hash__


class Frozen(BaseModel):
    """An immutable model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)

    @classmethod
    def trusted(cls, values: dict[str, Any]) -> Self:
        """What `cls(**values)` gives, for values that are known to be valid: nothing is checked or converted.

        For the harness's own records, of which many are made; what comes from outside is validated.
        """
        defaults, made = _blank(cls)
        fields = {**defaults, **values}
        for name, make in made:
            if name not in values:
                fields[name] = make()
        return _model(cls, fields, {*values})

    def altered(self, changes: dict[str, Any]) -> Self:
        """The same with other valid values, unchecked; several times as fast as `model_copy`, and as shallow."""
        return _model(type(self), {**self.__dict__, **changes}, {*self.__pydantic_fields_set__, *changes})


_Model = TypeVar("_Model", bound=Frozen)
_new = object.__new__
_set_fields, _set_given, _set_extra, _set_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
"""All that a model is made of; put there past what keeps it immutable."""


def _model(kind: type[_Model], fields: dict[str, Any], given: set[str]) -> _Model:
    model = _new(kind)
    _set_fields(model, fields)
    _set_given(model, given)
    _set_extra(model, None)
    _set_private(model, None)
    return model


@cache
def defaults_of(kind: type[BaseModel]) -> dict[str, Any]:
    """Defaults of a model in the order of its fields; what equals nothing where there is none. Not to be changed."""
    return {name: field.default for name, field in kind.model_fields.items()}


@cache
def _blank(kind: type[BaseModel]) -> tuple[dict[str, Any], tuple[tuple[str, _Make], ...]]:
    """Defaults of a model, and what makes those that each instance has for itself."""
    made = {name: field.default_factory for name, field in kind.model_fields.items()}
    return defaults_of(kind), tuple((name, make) for name, make in made.items() if make is not None)  # type: ignore[misc]  # takes no data
