"""JSON Schemas of the files as people write them, for editors: short forms, matrix and defaults included.

They are made from the models, so that a key exists in both or in neither. Where a matrix or a variable may fill in a
number or boolean, the text `${name}` is allowed in its place. What a schema cannot say (unique ids, files that exist,
matchers that make sense), `seatrial check` says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.permissions import Rules
from seatrial.core.policy import Exceptions, Policy
from seatrial.core.project import Project
from seatrial.errors import UsageError, did_you_mean
from seatrial.loading.rules_of_policies import CONDITIONS, GATES
from seatrial.loading.short_form import SHORT_KEYS

__all__ = ["SCHEMAS", "schema"]

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string", "minLength": 1}
_TEXT_FORMS = ("AnswerExpectation", "Concept", "ForbiddenCall", "GraderUse", "OrderEntry", "RequiredCall")
_VARIABLE = "Variable"
_DEFINED: dict[str, Schema] = {
    _VARIABLE: {"type": "string", "pattern": r"^\$\{[^{}]+\}$", "description": "A value that is filled in."}
}
_ATTACHMENT: Schema = {
    "anyOf": [
        _TEXT,
        {
            "type": "object",
            "properties": {"path": _TEXT, "sha256": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    ]
}


def schema(name: str) -> Schema:
    """The JSON Schema called `name`. Raises UsageError with the nearest name when there is none."""
    if name not in SCHEMAS:
        raise UsageError(f"there is no schema {name!r}; {did_you_mean(name, list(SCHEMAS))}")
    made = SCHEMAS[name]()
    return {"$schema": _DIALECT, "title": f"Seatrial {name}", **made}


def _written(model: type[BaseModel], ours: tuple[str, ...]) -> tuple[Schema, dict[str, Schema]]:
    """(schema of a model without the keys that are ours, its definitions with short forms)."""
    made = copy.deepcopy(model.model_json_schema(by_alias=True))
    definitions: dict[str, Schema] = made.pop("$defs", {})
    for key in ours:
        made["properties"].pop(key, None)
    for name in _TEXT_FORMS:
        _also(definitions, name, _TEXT)
    _also(definitions, "Times", {"type": "integer", "minimum": 0})
    _also(definitions, "Scope", {"const": "same"})
    return made, definitions


def _also(definitions: dict[str, Schema], name: str, form: Schema) -> None:
    if name in definitions:
        definitions[name] = {"anyOf": [form, definitions[name]]}


def _fillable(value: Any) -> Any:
    """`value` with `${name}` allowed wherever a number, boolean or one of some words is asked for."""
    if isinstance(value, list):
        return [_fillable(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _fillable(item) if key not in ("default", "enum", "const") else item for key, item in value.items()}
    if value.get("type") in ("integer", "number", "boolean") or ("enum" in value and value.get("type") == "string"):
        return {"anyOf": [filled, {"$ref": f"#/$defs/{_VARIABLE}"}]}
    return filled


def _with_definitions(top: Schema, definitions: dict[str, Schema]) -> Schema:
    return {**_fillable(top), "$defs": {**_fillable(definitions), **_DEFINED}}


def _case_keys() -> tuple[Schema, dict[str, Schema]]:
    """(properties of a case in both forms, definitions)."""
    case, definitions = _written(Case, ("path", "line", "base_id", "attachments"))
    properties = case["properties"]
    for short, (first, *rest) in SHORT_KEYS.items():
        properties[short] = _short(short, properties[first], rest, definitions)
    properties["input"] = {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "message": {"type": "string"},
                    "messages": {"type": "array"},
                    "attachments": {"type": "array", "items": _ATTACHMENT},
                },
            },
        ]
    }
    matrix_row: Schema = {"type": "object", "minProperties": 1}
    properties["matrix"] = {
        "anyOf": [
            {**matrix_row, "additionalProperties": {"type": "array", "minItems": 1}},
            {"type": "array", "items": matrix_row, "minItems": 1},
            {"type": "null"},
        ]
    }
    return properties, definitions


def _short(key: str, long: Schema, rest: list[str], definitions: dict[str, Schema]) -> Schema:
    if not rest:
        return {"type": "string", "description": "Short form of `input`."}
    owner = definitions[long["$ref"].rpartition("/")[2]]
    found = copy.deepcopy(owner["properties"][rest[0]])
    found["description"] = f"Short form of `{'.'.join(SHORT_KEYS[key])}`."
    return found if isinstance(found, dict) else {}


def _object(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**made, "required": list(required)} if required else made


def _case() -> Schema:
    properties, definitions = _case_keys()
    definitions["Case"] = _object({**properties, "version": {"const": 1}}, ("id",))
    definitions["Defaults"] = _object({key: value for key, value in properties.items() if key != "id"})
    cases: Schema = {"type": "array", "items": {"$ref": "#/$defs/Case"}}
    file = _object(
        {"version": {"const": 1}, "defaults": {"$ref": "#/$defs/Defaults"}, "cases": cases},
    )
    file["anyOf"] = [{"required": ["cases"]}, {"required": ["defaults"]}]
    return _with_definitions({"anyOf": [{"$ref": "#/$defs/Case"}, cases, file]}, definitions)


def _fixture() -> Schema:
    made, definitions = _written(FixtureSpec, ("name", "folder", "function", "content_digest", "surroundings_digest"))
    made["properties"]["version"] = {"const": 1}
    return {**made, "$defs": definitions}


def _project() -> Schema:
    made, definitions = _written(Project, ("root", "secrets"))
    properties, case_definitions = _case_keys()
    defaults = {key: value for key, value in properties.items() if key not in ("id", "suite", "matrix")}
    definitions = {**case_definitions, **definitions}
    agent: Schema = {"anyOf": [_TEXT, {"$ref": "#/$defs/AgentSpec"}]}
    suite = {"anyOf": [_object({**defaults, "gate": {"type": "boolean"}}), {"type": "null"}]}
    made["properties"].update(
        agent=agent,
        builds={"type": "object", "additionalProperties": agent},
        defaults=_object(defaults),
        suites={"type": "object", "additionalProperties": suite},
    )
    definitions.pop("SuiteSpec", None)
    return _with_definitions(made, definitions)


def _permissions() -> Schema:
    made, definitions = _written(Rules, ())
    return {**made, "$defs": definitions}


def _policy() -> Schema:
    made, definitions = _written(Policy, ())
    _also(definitions, "GateSpec", {"type": "number", "minimum": 0})
    made["properties"]["gates"]["additionalProperties"]["propertyNames"] = {"enum": list(GATES)}
    conditions = definitions["ReviewSpec"]["properties"]["require_human_review_when"]
    conditions["propertyNames"] = {"enum": list(CONDITIONS)}
    return {**made, "$defs": definitions}


def _exceptions() -> Schema:
    made, definitions = _written(Exceptions, ())
    definitions["ExceptionRule"]["oneOf"] = [{"required": ["case"]}, {"required": ["gate"]}]
    return {**made, "$defs": definitions}


SCHEMAS: dict[str, Callable[[], Schema]] = {
    "case": _case,
    "exceptions": _exceptions,
    "fixture": _fixture,
    "permissions": _permissions,
    "policy": _policy,
    "project": _project,
}
"""Name of a file format to the maker of its schema."""
