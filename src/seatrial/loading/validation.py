"""Pydantic's errors as diagnostics: the place, the rule, the offending value with its type, the nearest known key."""

from __future__ import annotations

import json
import types
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from seatrial.core.ids import readable
from seatrial.core.wording import wanted
from seatrial.errors import Diagnostic, InputError, did_you_mean
from seatrial.loading.located import Map, Spot, plain, problem_at, shown, spot_at

__all__ = ["dotted", "kinds_at", "problems_in", "text_problem", "validated"]

Model = TypeVar("Model", bound=BaseModel)

_SHORT_FORMS = {
    **dict.fromkeys(
        (
            "AnswerExpectation",
            "Concept",
            "ForbiddenCall",
            "GraderUse",
            "OrderEntry",
            "RequiredCall",
            "AgentSpec",
            "Scope",
        ),
        "text",
    ),
    "GateSpec": "a number",
    "Times": "a whole number",
}
"""What may stand for a whole mapping, by model."""
_OF_A_TYPE = frozenset(
    {
        *("bool_parsing", "bool_type", "date_type", "dict_type", "float_parsing", "float_type", "finite_number"),
        *("int_from_float", "int_parsing", "int_type", "list_type", "mapping_type", "model_attributes_type"),
        *("model_type", "string_type", "tuple_type"),
    }
)
"""Kinds of error that a deeper one explains."""
_REASONS = {
    "reset_before_trial": "a trial that starts from what another left behind shows nothing; it is always true",
}
"""Why a key takes one value only."""
_YES_AND_NO = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class _Found(NamedTuple):
    """One error of pydantic with the place it leads to."""

    kind: str
    context: dict[str, Any]
    message: str
    loc: tuple[str | int, ...]
    """The parts of pydantic's path that exist in the data, and the last one where it is a key."""
    spot: Spot
    value: Any


def validated(model: type[Model], value: Map, *, top_keys: Collection[str] = ()) -> Model:
    """`value` as a model. Raises InputError with every problem; `top_keys` are further names for its hints."""
    try:
        return model.model_validate(plain(value))
    except ValidationError as error:
        raise InputError(problems_in(error, model, value, top_keys=top_keys)) from error


def problems_in(
    error: ValidationError,
    model: type[BaseModel],
    value: Any,
    *,
    below: tuple[str | int, ...] = (),
    top_keys: Collection[str] = (),
) -> list[Diagnostic]:
    """The diagnostics of a validation error. `below` leads from `value` to the part that was validated."""
    found = [_found(entry, value, below) for entry in error.errors(include_url=False, include_input=False)]
    groups: dict[tuple[str | int, ...], list[_Found]] = {}
    for item in found:
        groups.setdefault(item.loc, []).append(item)
    return [
        _problem(group, model, value, below, top_keys)
        for loc, group in groups.items()
        if not any(_explains(other, group[0]) for other in groups if len(other) > len(loc) and other[: len(loc)] == loc)
    ]


def _explains(_other: tuple[str | int, ...], shallow: _Found) -> bool:
    """Whether a deeper problem makes this one idle: a mapping that also is no boolean, no text ..."""
    return shallow.kind in _OF_A_TYPE or shallow.kind == "too_short"


def _found(entry: Any, value: Any, below: tuple[str | int, ...]) -> _Found:
    path = (*below, *(part for part in entry["loc"] if part != "[key]"))
    spot, found_value, loc = spot_at(value, path)
    kind = entry["type"]
    if kind == "missing":
        loc = (*loc, path[-1])
    elif kind == "extra_forbidden" and loc:
        owner = spot_at(value, loc[:-1])[1]
        spot = owner.keys_at.get(str(loc[-1]), spot) if isinstance(owner, Map) else spot
    return _Found(kind, entry.get("ctx", {}), entry["msg"], loc, spot, found_value)


def dotted(loc: Iterable[str | int]) -> str:
    """`expected.required_tools[0].name`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return readable(text)


def _problem(
    group: list[_Found],
    model: type[BaseModel],
    value: Any,
    below: tuple[str | int, ...],
    top_keys: Collection[str],
) -> Diagnostic:
    first = group[0]
    name = dotted(first.loc)
    if first.kind == "extra_forbidden":
        return _unknown_key(first, model, below, top_keys)
    if first.kind == "missing":
        return problem_at(first.spot, "missing-key", f"`{name}` is missing")
    if first.kind == "value_error":
        reason = str(first.context.get("error", first.message))
        return problem_at(first.spot, "wrong-value", f"`{name}`: {readable(reason)}" if name else readable(reason))
    found = list(dict.fromkeys(text for item in group for text in _wanted(item)))
    if "a number" in found and "a whole number" in found:
        found.remove("a whole number")
    if _needs_quotes(group, found):
        return text_problem(name, first.value, first.spot)
    message = f"`{name}` should be {' or '.join(found)}, not {shown(first.value, first.spot)}"
    return problem_at(first.spot, "wrong-value", message, _hint(first, found))


def _wanted(item: _Found) -> list[str]:
    if item.kind in ("model_type", "model_attributes_type") and item.context.get("class_name") in _SHORT_FORMS:
        return [_SHORT_FORMS[item.context["class_name"]], "a mapping"]
    return [wanted(item.kind, item.context)]


def _needs_quotes(group: list[_Found], words: list[str]) -> bool:
    """Whether text was words, nothing but text would do for a scalar, and the scalar is none."""
    value = group[0].value
    scalar = value is None or isinstance(value, (bool, int, float))
    return scalar and "text" in words and set(words) <= {"text", "a mapping", "a list"}


def text_problem(name: str, value: Any, spot: Spot) -> Diagnostic:
    """The diagnostic of a value that is no text where text is wanted."""
    message = f"`{name}` takes text, not {shown(value, spot)}"
    if isinstance(value, (dict, list)):
        return problem_at(spot, "wrong-value", message)
    return problem_at(spot, "needs-quotes", message, _quotes_hint(name, value, spot))


def _quotes_hint(name: str, value: Any, spot: Spot) -> str:
    text = json.dumps(value) if spot.written is None else spot.written
    if spot.variable:
        hint = f"put the value that {spot.variable} stands for in quotes"
        text = f'"{spot.variable}"'
    else:
        hint = f'put it in quotes: "{text}"' if text else 'write a text, or "" for an empty one'
    if name.endswith("answer") and isinstance(value, (int, float)) and not isinstance(value, bool):
        hint += f", or write {{number: {text}}}"
    return hint


def _hint(item: _Found, words: list[str]) -> str:
    if item.loc and item.loc[-1] in _REASONS:
        return _REASONS[str(item.loc[-1])]
    if isinstance(item.value, str) and words == ["a list"]:
        return "write [ ] around it"
    if isinstance(item.value, str) and "true or false" in words and item.value.casefold() in _YES_AND_NO:
        return f"in YAML 1.2 that is text; write {_YES_AND_NO[item.value.casefold()]}"
    if isinstance(item.value, str) and any("number" in text for text in words):
        return "write the number without quotes"
    return ""


# --- known keys ----------------------------------------------------------------------------------------------------


def _unknown_key(
    item: _Found, model: type[BaseModel], below: tuple[str | int, ...], top_keys: Collection[str]
) -> Diagnostic:
    key = str(item.loc[-1])
    owner = item.loc[:-1]
    known = set(_keys_of(_annotations_at(model, owner[len(below) :])))
    if len(owner) == len(below):
        known |= set(top_keys)
    home = None if owner else _homes(model).get(key)
    hint = f"it belongs under `{home}`" if home else did_you_mean(key, sorted(known))
    where = f" in `{dotted(owner)}`" if owner else ""
    return problem_at(item.spot, "unknown-key", f"unknown key {readable(key)!r}{where}", hint)


@lru_cache(maxsize=32)
def _homes(model: type[BaseModel]) -> dict[str, str]:
    """Keys of the mappings right below a model, with the key they stand under."""
    homes: dict[str, str] = {}
    for name, field in model.model_fields.items():
        for key in _keys_of([field.annotation]):
            homes.setdefault(key, name)
    return homes


def _keys_of(annotations: Iterable[Any]) -> list[str]:
    return [
        field.alias or name
        for annotation in annotations
        for kind in _alternatives(annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for name, field in kind.model_fields.items()
        if field.exclude is not True
    ]


def _alternatives(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _alternatives(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [kind for part in get_args(annotation) for kind in _alternatives(part)]
    return [annotation]


def _annotations_at(annotation: Any, path: Sequence[str | int]) -> list[Any]:
    """What may stand at `path` below an annotation."""
    found = _alternatives(annotation)
    for part in path:
        found = [kind for each in found for kind in _step(each, part)]
    return found


def _step(annotation: Any, part: str | int) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        named = [field for name, field in fields.items() if part == (field.alias or name)]
        return _alternatives(named[0].annotation) if named else []
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (tuple, list) and isinstance(part, int):
        return _alternatives(arguments[0])
    if origin is dict:
        return _alternatives(arguments[1])
    return [Any] if annotation is Any else []


def kinds_at(annotation: Any, path: Sequence[str | int]) -> frozenset[str]:
    """What may be written at `path`: names among text, list, mapping, value (anything else)."""
    kinds: set[str] = set()
    for each in _annotations_at(annotation, path):
        kinds |= _kinds(each)
    return frozenset(kinds or {"value"})


def _kinds(annotation: Any) -> set[str]:
    origin = get_origin(annotation)
    if origin in (tuple, list):
        return {"list"}
    if origin is dict:
        return {"mapping"}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {"mapping"} | ({"text"} if _SHORT_FORMS.get(annotation.__name__) == "text" else set())
    literals = get_args(annotation)
    is_text = annotation is str or (bool(literals) and all(isinstance(literal, str) for literal in literals))
    return {"text"} if is_text else set() if annotation is type(None) else {"value"}
