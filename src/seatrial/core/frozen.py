"""What every file format and record shares: immutable models that refuse unknown keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

__all__ = ["Frozen"]

_Make = Callable[[], Any]


class Frozen(BaseModel):
    """An immutable model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)

    @classmethod
    def trusted(cls, values: dict[str, Any]) -> Self:
        """What `cls(**values)` gives, for values that are known to be valid: nothing is checked or converted.

        For the harness's own records, of which many are made; what comes from outside is validated.
        """
        plain, made = _defaults(cls)
        fields = plain | values
        for name, make in made:
            if name not in values:
                fields[name] = make()
        return cls._of(fields, set(values))

    def altered(self, changes: dict[str, Any]) -> Self:
        """The same with other valid values, unchecked; several times as fast as `model_copy`, and as shallow."""
        return self._of(vars(self) | changes, self.model_fields_set | changes.keys())

    @classmethod
    def _of(cls, fields: dict[str, Any], given: set[str]) -> Self:
        model = cls.__new__(cls)
        put = object.__setattr__
        put(model, "__dict__", fields)
        put(model, "__pydantic_fields_set__", given)
        put(model, "__pydantic_extra__", None)
        put(model, "__pydantic_private__", None)
        return model


@cache
def _defaults(kind: type[BaseModel]) -> tuple[dict[str, Any], tuple[tuple[str, _Make], ...]]:
    """Defaults of a model in the order of its fields, and what makes those that each instance has for itself."""
    fields = kind.model_fields
    plain = {name: field.default for name, field in fields.items()}
    made = {name: field.default_factory for name, field in fields.items() if field.default_factory is not None}
    return plain, tuple(made.items())  # type: ignore[arg-type]  # none of ours takes the data validated so far
