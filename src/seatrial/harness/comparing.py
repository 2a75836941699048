"""Comparing what two paths hold: run folders, `results.json` files, or files of the function-style harness."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import ExitCode, UsageError
from seatrial.store.rundir import RunFolder, is_run_folder
from seatrial.verdict.comparison import CaseComparison, Comparison
from seatrial.verdict.comparison import compare as compare_sides
from seatrial.verdict.sides import Side, SideCase, read_side, side_of_run

__all__ = ["Compared", "compare", "comparison_json", "side_at"]


@dataclass(frozen=True)
class Compared:
    """A comparison with the strictness it is judged by."""

    comparison: Comparison
    strict: bool = False

    @property
    def exit_code(self) -> int:
        """What `seatrial compare` tells the shell."""
        return int(self.comparison.exit_code(strict=self.strict))


def side_at(path: Path) -> Side:
    """One side of a comparison. UsageError when there is nothing to compare at `path`."""
    if path.is_dir():
        if not is_run_folder(path):
            raise UsageError(f"{path}: this folder holds no run (it has no run.json)")
        stored = RunFolder(path)
        return side_of_run(stored.info, stored.cases(), stored.records())
    if not path.exists():
        raise UsageError(f"{path}: there is no such run folder or file")
    return read_side(path)


def compare(baseline: str | Path, candidate: str | Path, *, strict: bool = False) -> Compared:
    """Compare two run folders, results files or harness files case by case; needs no project."""
    return Compared(compare_sides(side_at(Path(baseline)), side_at(Path(candidate))), strict)


def comparison_json(compared: Compared) -> dict[str, Any]:
    """The document of `seatrial compare --json`: `{verdict, baseline, candidate, cases}`."""
    comparison = compared.comparison
    return {
        "verdict": _VERDICTS[ExitCode(compared.exit_code)],
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "cases": [_case(row) for row in comparison.cases],
    }


_VERDICTS = {
    ExitCode.PASS: "pass",
    ExitCode.FAILED: "failed",
    ExitCode.REVIEW: "review",
    ExitCode.INCOMPLETE: "incomplete",
}


def _case(row: CaseComparison) -> dict[str, Any]:
    return {
        "id": row.case_id,
        "change": str(row.change),
        "grounds": row.grounds,
        "baseline": _side(row.baseline),
        "candidate": _side(row.candidate),
    }


def _side(case: SideCase | None) -> dict[str, Any] | None:
    if case is None:
        return None
    shown = ("verdict", "passes", "valid", "trials", "reason", "suite", "risk", "digest")
    return {name: value for name, value in asdict(case).items() if name in shown} | {"rate": case.rate}
