"""The lines that a function-style harness prints."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.core.encoding import shortened
from seatrial.report.literal import literal
from seatrial.verdict.harness_results import HarnessResult

__all__ = ["harness_lines"]

_MARKS = {"passed": "[PASS]", "failed": "[FAIL]", "invalid": "[INVALID]"}


def harness_lines(results: Sequence[HarnessResult]) -> list[str]:
    """`3/4 passed`, then a line a case: `[FAIL] name (0.00 s) - raised ValueError: message`.

    A check that broke is `[INVALID]` and counted apart: it says nothing about the agent. All text is literal.
    """
    passed = sum(result.passed is True for result in results)
    invalid = sum(result.passed is None for result in results)
    note = f", {invalid} invalid" if invalid else ""
    return [f"{passed}/{len(results)} passed{note}", *(_line(result) for result in results)]


def _line(result: HarnessResult) -> str:
    seconds = "" if result.seconds is None else f" ({result.seconds:.2f} s)"
    detail = f" - {literal(shortened(result.detail))}" if result.detail else ""
    return f"{_MARKS[result.status]} {literal(result.name)}{seconds}{detail}"
