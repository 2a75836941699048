"""The page on adapters names everything that the kit has."""

from __future__ import annotations

import re
from dataclasses import fields

from executable_docs import REPOSITORY
from seatrial.testing import conformance
from seatrial.testing.conformance import Framework, Outcome, Ways

ADAPTERS = REPOSITORY / "docs" / "adapters"
PAGE = (ADAPTERS / "writing-an-adapter.md").read_text(encoding="utf-8")


def in_code(text: str) -> set[str]:
    return set(re.findall(r"[\w.]+", " ".join(re.findall(r"`[^`\n]+`", text))))


def test_every_way_in_which_frameworks_differ_is_documented() -> None:
    assert {field.name for field in fields(Ways)} <= in_code(PAGE)


def test_everything_that_a_framework_may_say_is_documented() -> None:
    assert set(Framework.__annotations__) - {"kind", "ways"} <= in_code(PAGE)


def test_every_outcome_is_documented() -> None:
    assert {str(outcome) for outcome in Outcome} <= set(re.findall(r"`([^`\n]+)`", PAGE))


def test_every_situation_has_a_row_and_a_sentence() -> None:
    matrix = (ADAPTERS / "matrix.md").read_text(encoding="utf-8")
    for name, sentence in conformance.SITUATIONS.items():
        assert f"| `{name}` |" in matrix
        assert f"- `{name}`: {sentence}" in matrix
