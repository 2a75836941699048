"""Comparing what two paths hold: run folders, `results.json` files, approved baselines, files of a Harness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.report.comparison_data import comparison_data
from seatrial.store.rundir import RunFolder, is_run_folder
from seatrial.store.verifying import verify
from seatrial.verdict.comparison import Comparison
from seatrial.verdict.comparison import compare as compare_sides
from seatrial.verdict.side_files import read_side
from seatrial.verdict.sides import Side, side_of_run

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
        run = RunFolder(path)
        stored = verify(run)
        side = side_of_run(stored.info, stored.cases, stored.records, trace_of=run.trace)
        return replace(side, problems=tuple(f"run {stored.info.run_id}: {text}" for text in stored.problems))
    if not path.exists():
        raise UsageError(f"{path}: there is no such run folder or file")
    return read_side(path)


def compare(baseline: str | Path, candidate: str | Path, *, strict: bool = False) -> Compared:
    """Compare two run folders, approved baselines, results files or harness files; needs no project."""
    return Compared(compare_sides(side_at(Path(baseline)), side_at(Path(candidate))), strict)


def comparison_json(compared: Compared) -> dict[str, Any]:
    """The document of `seatrial compare --json`: `{verdict, baseline, candidate, cases, ...}`."""
    return comparison_data(compared.comparison, strict=compared.strict)
