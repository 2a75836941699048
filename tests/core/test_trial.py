"""What a trial is worth as evidence."""

from __future__ import annotations

import pytest

from seatrial.core.grade import Grade, GraderFailure, Verdict
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason, TrialStatus, status_of

PASS, FAIL, ABSTAIN = (Grade(verdict=verdict) for verdict in Verdict)
ADVISORY = Grade(verdict=Verdict.FAIL, required=False)
BROKE = GraderFailure(name="g", error="KeyError", message="x")
ANSWERED, RAISED, WAITS, HARNESS = (
    StopReason.ANSWERED,
    StopReason.AGENT_ERROR,
    StopReason.WAITING_APPROVAL,
    StopReason.HARNESS_ERROR,
)


@pytest.mark.parametrize(
    ("grades", "failures", "stop", "broken", "foreseen", "status", "reason"),
    [
        ([PASS], [], ANSWERED, None, False, "passed", None),
        ([PASS, ADVISORY], [], ANSWERED, None, False, "passed", None),
        ([ADVISORY], [], ANSWERED, None, False, "ungraded", None),
        ([], [], ANSWERED, None, False, "ungraded", None),
        ([PASS, FAIL], [], ANSWERED, None, False, "failed", None),
        ([PASS], [], RAISED, None, False, "failed", None),
        ([PASS, ABSTAIN], [], ANSWERED, None, False, "invalid", "unobserved"),
        ([PASS], [BROKE], ANSWERED, None, False, "invalid", "grader"),
        ([FAIL], [BROKE], ANSWERED, InvalidReason.FIXTURE, False, "failed", None),
        ([PASS], [], ANSWERED, InvalidReason.FIXTURE, False, "invalid", "fixture"),
        ([], [], HARNESS, InvalidReason.FIXTURE, False, "invalid", "fixture"),
        ([], [], HARNESS, None, False, "invalid", "harness"),
        ([PASS], [], WAITS, None, False, "failed", None),
        ([PASS], [], WAITS, None, True, "passed", None),
        ([FAIL], [], WAITS, None, True, "failed", None),
    ],
)
def test_status_of_a_trial(
    grades: list[Grade],
    failures: list[GraderFailure],
    stop: StopReason,
    broken: InvalidReason | None,
    foreseen: bool,
    status: str,
    reason: str | None,
) -> None:
    found = status_of(grades, failures, stop, broken, foreseen=foreseen)
    assert found == (TrialStatus(status), reason and InvalidReason(reason))
