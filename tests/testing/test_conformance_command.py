"""The kit from a shell, and the table that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.broken_adapters import DeclaresWhatItsFrameworkHasNot, LosesCachedTokens, adapter_with
from conformance.reference_adapter import SEEN, ReferenceFramework, ReferenceSession
from seatrial.core.trace import Observable
from seatrial.errors import ExitCode, UsageError
from seatrial.testing import conformance
from seatrial.testing.conformance.__main__ import main

HONEST = "conformance.reference_adapter"
UNPROVEN = ReferenceFramework(
    adapter_with(DeclaresWhatItsFrameworkHasNot), kind="unproven", absent=DeclaresWhatItsFrameworkHasNot.absent
)
BROKEN = ReferenceFramework(adapter_with(LosesCachedTokens), kind="broken")


def test_an_honest_framework_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([HONEST]) is ExitCode.PASS
    assert capsys.readouterr().out.splitlines()[:2] == [
        "reference: answer_only: passed",
        "reference: two_calls: passed",
    ]


def test_a_failed_situation_exits_1_with_its_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{__name__}:BROKEN"]) is ExitCode.FAILED
    assert "usage: model call 1: usage: expected {" in capsys.readouterr().out


def test_what_is_declared_and_shown_nowhere_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{__name__}:UNPROVEN"]) is ExitCode.FAILED
    assert "observes approvals: expected declared, so shown by some situation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("no_such_module_here", "no_such_module_here: No module named 'no_such_module_here'"),
        ("json", "json: no framework there; let FRAMEWORKS name them"),
        ("json:dumps", "json:dumps: a function is no Framework"),
    ],
)
def test_what_is_no_framework_exits_2(place: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([place]) is ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_the_matrix_is_written(tmp_path: Path) -> None:
    assert main([HONEST, f"{__name__}:BROKEN", "--matrix", str(tmp_path / "matrix.md")]) is ExitCode.FAILED
    lines = (tmp_path / "matrix.md").read_text(encoding="utf-8").splitlines()
    assert "| situation | reference | broken |" in lines
    assert "| `usage` | passed | **failed** |" in lines
    assert "| `streaming` | passed | passed |" in lines


def test_a_matrix_that_cannot_be_written_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([HONEST, "--matrix", str(tmp_path)]) is ExitCode.USAGE
    assert "--matrix" in capsys.readouterr().err


def test_the_matrix_says_why_something_is_absent() -> None:
    unseen = {Observable.HANDOFFS, Observable.HANDOFF_CONTEXT}
    absent = {"handoff": "one agent only", "refused_handoff": "one agent only", "usage": "no tokens"}
    honest = ReferenceFramework(
        adapter_with(type("Honest", (ReferenceSession,), {"observes": SEEN - unseen})), absent=absent
    )
    page = conformance.matrix([conformance.check(honest)])
    assert "| `handoff` | – |" in page
    assert "- `usage`: no tokens.\n- `handoff`, `refused_handoff`: one agent only." in page


def test_a_module_without_a_list_offers_its_own_classes() -> None:
    (found,) = conformance.frameworks_at(HONEST)
    assert isinstance(found, ReferenceFramework)
    with pytest.raises(UsageError, match="no 'Missing'"):
        conformance.frameworks_at(f"{HONEST}:Missing")
