from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.permissions import Rules
from seatrial.core.project import Project
from seatrial.errors import UsageError
from seatrial.loading.located import plain
from seatrial.loading.schema import SCHEMAS, schema
from seatrial.loading.short_form import SHORT_KEYS
from seatrial.loading.yaml import read_yaml


def errors(name: str, data: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(schema(name)).iter_errors(data)]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_one_and_an_editor_accepts_the_printed_file(data, name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    printed = plain(read_yaml((data / f"printed_{name}.yaml").read_text(encoding="utf-8")))
    assert errors(name, printed) == []


@pytest.mark.parametrize(
    "text",
    [
        "{id: a, query: x, expected_answer: '4', expected_tools: [add], forbidden_tools: [x], max_steps: 3}",
        "[{id: a, input: {message: hi, attachments: [a.png, {path: b.png, sha256: ab}]}}]",
        "{version: 1, defaults: {risk: high, graders: [], query: '${q}'}, cases: [{id: a, matrix: {q: [x, y]}}]}",
        "{id: a, query: x, matrix: [{n: 1}, {n: 2}], thresholds: {trials: '${n}'}, risk: '${r}'}",
        "{id: a, expected: {answer: {any_of: [x, {number: -5, tolerance: 0}]}, error_handling: {says: [sorry]}}}",
        "{id: a, expected: {required_tools: [a, {name: b, times: {min: 1, max: 2}}], handoff: {target: null}}}",
        "{id: a, user: {simulated: {persona: p, goal: g, model: judge, max_turns: 6}}, judges: [{rubric: r}]}",
        "{id: a, query: x, environment: {attack: {name: n, seed: 7, place: {tool_result: t}, goal: {calls: c}}}}",
    ],
)
def test_the_forms_people_write_are_accepted(text: str) -> None:
    assert errors("case", plain(read_yaml(text))) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("case", "{id: a, qery: hi}"),
        ("case", "{query: hi}"),
        ("case", "{id: a, query: 5}"),
        ("case", "{id: a, query: hi, path: x}"),
        ("case", "{cases: [{id: a}], default: {}}"),
        ("case", "{id: a, query: hi, trials: 0}"),
        ("fixture", "{satte: {}}"),
        ("fixture", "{content_digest: x}"),
        ("project", "{agnet: a}"),
        ("project", "{root: /}"),
        ("project", "{suites: {smoke: {trails: 1}}}"),
        ("permissions", "{tools: {t: {side_effects: true}}}"),
    ],
)
def test_what_loading_refuses_the_schema_refuses(name: str, text: str) -> None:
    assert errors(name, plain(read_yaml(text)))


def test_every_key_of_the_models_is_in_its_schema() -> None:
    case = schema("case")["$defs"]["Case"]["properties"]
    assert set(case) == set(Case.model_fields) - {"path", "line", "base_id", "attachments"} | {
        *SHORT_KEYS,
        "matrix",
        "version",
    }
    assert set(schema("fixture")["properties"]) == set(FixtureSpec.model_fields) - {
        "name",
        "folder",
        "function",
        "content_digest",
        "surroundings_digest",
    } | {"version"}
    assert set(schema("project")["properties"]) == set(Project.model_fields) - {"root", "secrets"}
    assert set(schema("permissions")["properties"]) == set(Rules.model_fields)


def test_an_unknown_schema_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'case'"):
        schema("cases")
