"""Models that are built without checks are those that validation gives."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.core.frozen import Frozen
from seatrial.core.grade import Grade, Tally, Verdict
from seatrial.core.trace import AgentError, StopReason, ToolCallEvent, Trace
from seatrial.core.trial import TrialRecord, TrialStatus

VALID: list[tuple[type[Frozen], dict[str, Any]]] = [
    (Grade, {"verdict": Verdict.PASS, "score": 1.0, "reason": "so"}),
    (Grade, {"name": "n", "verdict": Verdict.FAIL, "score": 0.5, "tallies": {"t": Tally(hit=1.0, of=2.0)}}),
    (TrialRecord, {"case_id": "c", "status": TrialStatus.PASSED, "stop_reason": StopReason.ANSWERED}),
    (Trace, {"error": AgentError(type="E", message="m"), "output": {"a": [1]}, "outputs": ({"a": [1]},)}),
    (ToolCallEvent, {"number": 1, "name": "look", "arguments": {"n": 1}}),
]


@pytest.mark.parametrize(("kind", "values"), VALID)
def test_trusted_values_give_what_validation_gives(kind: type[Frozen], values: dict[str, Any]) -> None:
    trusted, validated = kind.trusted(values), kind(**values)
    assert trusted == validated
    assert trusted.model_fields_set == validated.model_fields_set
    assert trusted.model_dump_json() == validated.model_dump_json()
    assert kind.model_validate(vars(trusted), strict=True) == trusted


def test_each_has_containers_of_its_own() -> None:
    one, other = (Grade.trusted({"verdict": Verdict.PASS}) for _ in range(2))
    assert one.tallies == other.tallies == {}
    assert one.tallies is not other.tallies


def test_an_altered_model_leaves_the_first_as_it_was_and_knows_what_was_set() -> None:
    first = Grade(verdict=Verdict.PASS)
    altered = first.altered({"name": "n", "required": False})
    assert (first.name, first.required) == ("", True)
    assert altered == first.model_copy(update={"name": "n", "required": False})
    assert altered.model_fields_set == {"verdict", "score", "name", "required"}


def test_what_is_built_unchecked_stays_immutable() -> None:
    grade = Grade.trusted({"verdict": Verdict.PASS})
    with pytest.raises(ValueError, match="frozen"):
        grade.name = "other"  # type: ignore[misc]
