"""Models as JSON data, and models from JSON text, whatever the text that an agent put into them.

pydantic's own serializer gives up at a lone surrogate in the key of a mapping, its own reader at any lone surrogate.
Both are tried first: they are the fast way, and the other one is rarely needed.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

__all__ = ["json_of", "model_of"]

_Model = TypeVar("_Model", bound=BaseModel)


def json_of(model: BaseModel, **options: Any) -> dict[str, Any]:
    """The model as JSON data; `options` are those of `model_dump`."""
    try:
        return model.model_dump(mode="json", **options)
    except UnicodeEncodeError:
        data: dict[str, Any] = json.loads(json.dumps(model.model_dump(**options), default=list))  # of sets
        return data


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
