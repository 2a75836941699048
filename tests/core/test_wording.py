"""Validation errors in a person's words."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Literal, get_args

import pytest
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import core_schema

from seatrial.core import wording
from seatrial.core.wording import first_problem, wanted

OF_PYTHON_CODE = {
    *("no_such_attribute", "needs_python_object", "frozen_field", "frozen_instance", "get_attribute_error"),
    *("default_factory_not_called", "is_instance_of", "is_subclass_of", "missing_sentinel_error", "ellipsis_error"),
    *("union_tag_invalid", "union_tag_not_found", "missing_argument", "unexpected_keyword_argument"),
    *("missing_keyword_only_argument", "unexpected_positional_argument", "missing_positional_only_argument"),
    "multiple_argument_values",
}
"""Kinds that no data of a file leads to."""
SAID_OTHERWISE = {"missing", "extra_forbidden", "value_error", "assertion_error"}


@pytest.mark.parametrize("kind", sorted({*get_args(core_schema.ErrorType)} - OF_PYTHON_CODE - SAID_OTHERWISE))
def test_every_kind_of_error_has_words(kind: str) -> None:
    assert kind in wording._WANTED
    context = defaultdict(lambda: 3, expected="'a' or 'b'", pattern="^x$")
    numbers = ("multiple_of", "max_digits", "decimal_places", "whole_digits", "gt", "ge", "lt", "le", "max_length")
    assert wanted(kind, {**context, **dict.fromkeys(numbers, 3)})


class Model(BaseModel):
    model_config = {"extra": "forbid"}
    share: Annotated[float, Field(gt=0, lt=0.5, strict=True)] = 0.1
    name: Annotated[str, Field(pattern=r"\S")] = "a"
    level: Literal["block", "review"] = "block"
    steps: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"share": 0.5}, "share: should be below 0.5, not 0.5"),
        ({"share": "x"}, 'share: should be a number, not "x"'),
        ({"name": " "}, 'name: should be text that is not blank, not " "'),
        ({"level": "stop"}, "level: should be 'block' or 'review', not \"stop\""),
        ({"steps": [1, "x"]}, 'steps.1: should be a whole number, not "x"'),
        ({"steps": 3}, "steps: should be a list, not 3"),
        ({"other": 1}, "other: is no known key"),
        ({"share": 0, "name": ""}, "share: should be above 0, not 0 (and 1 more)"),
        ([], "should be a mapping, not []"),
    ],
)
def test_one_problem_in_words(data: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate(data)
    assert first_problem(caught.value) == words


def test_text_that_is_no_json() -> None:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate_json("{")
    assert first_problem(caught.value) == "is not JSON"
