"""Models as JSON data, and models from JSON text, whatever an agent put into them.

pydantic's own serializer puts other characters in place of lone surrogates in the keys of a mapping, or gives up at
them, and at what is nested more than 255 deep: so JSON is not asked of it. Its reader gives up at any lone surrogate;
it is tried first, as the fast way.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from seatrial.core.encoding import MODELS, parts_of, plain

__all__ = ["as_given", "dumped", "json_of", "model_of"]

_Model = TypeVar("_Model", bound=BaseModel)


def json_of(model: BaseModel, **options: Any) -> dict[str, Any]:
    """The model as JSON data, as `line_of` writes it; `options` are those of `model_dump`."""
    data: dict[str, Any] = plain(dumped(model, **options))
    return data


def dumped(model: BaseModel, **options: Any) -> dict[str, Any]:
    """What `model.model_dump(**options)` gives, in half the time: that passes on every option there is."""
    data: dict[str, Any] = type(model).__pydantic_serializer__.to_python(model, **options)
    return data


def as_given(value: Any) -> Any:
    """For `line_of`: of a model what was given, by the keys of its format; what `model_dump(by_alias=True,
    exclude_unset=True)` gives, once for each model in it."""
    kind = type(value)
    if not isinstance(kind, MODELS):
        return parts_of(value)
    fields = vars(value)
    return {key: fields[name] for name, key in _keys(kind, frozenset(value.__pydantic_fields_set__))}


@lru_cache(maxsize=1_024)
def _keys(kind: type[BaseModel], given: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The given fields that are part of a format, in its order, each with its key there."""
    fields = [(name, field) for name, field in kind.model_fields.items() if name in given and not field.exclude]
    return tuple((name, field.alias or name) for name, field in fields)


def model_of(kind: type[_Model], text: bytes) -> _Model:
    """The model that JSON text holds. Raises ValidationError when it is no JSON, or another model's."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        if error.errors(include_url=False, include_context=False)[0]["type"] != "json_invalid":
            raise
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise error from None
    return kind.model_validate(data)
