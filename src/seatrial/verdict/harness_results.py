"""Results of the function-style harness and their file, `eval_results.json`.

The file is `{"version": 1, "passed": 3, "total": 4, "results": [{name, passed, status, seconds, detail, output}]}`.
`passed` is true, false, or null where the check itself broke (`status: invalid`): that says nothing about the agent.
Only `name` and `passed` are needed to read a file back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import fsum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seatrial.core.encoding import dumps, shortened
from seatrial.core.grade import Verdict
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.core.wording import first_problem
from seatrial.errors import UsageError
from seatrial.loading.files import problem_with_kind
from seatrial.verdict.metrics import CaseResult, CaseVerdict
from seatrial.verdict.trials import failure_text, reason_of, stable

__all__ = ["HarnessResult", "harness_json", "harness_results", "parse_harness_json", "read_harness_json", "read_json"]


_WHOLE = 64 * 1024
"""Characters of an output that the file still holds whole."""


class HarnessResult(BaseModel):
    """How one case of a Harness came out."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    passed: bool | None
    """None: the check broke, so nothing is known about the agent."""
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The agent's own time; None when it was not measured."""
    detail: str = ""
    """What the check said, or `raised ValueError: message`."""
    output: Any = None
    """What the agent returned, as JSON data."""

    @property
    def status(self) -> Literal["passed", "failed", "invalid"]:
        """The same in a word."""
        return "invalid" if self.passed is None else ("passed" if self.passed else "failed")


def harness_results(results: Sequence[CaseResult]) -> tuple[HarnessResult, ...]:
    """What the lines and the file of a Harness show, from the results of its cases."""
    return tuple(_harness_result(result) for result in results)


def _harness_result(result: CaseResult) -> HarnessResult:
    times = [trial.last.latency_ms for trial in result.recorded if trial.last.latency_ms is not None]
    telling = _telling(result)
    return HarnessResult(
        name=result.case_id,
        passed={CaseVerdict.PASSED: True, CaseVerdict.FAILED: False}.get(result.verdict),
        seconds=fsum(times) / 1000 if times else None,
        detail=result.reason if telling is None else _detail(telling),
        output=None if telling is None else telling.output,
    )


def _telling(result: CaseResult) -> TrialRecord | None:
    """The first trial that did not pass where the case did not; the first one where it did."""
    wanted = result.verdict is CaseVerdict.PASSED
    lasts = (trial.last for trial in result.recorded if wanted or trial.last.status is not TrialStatus.PASSED)
    first = next(lasts, None)
    return None if first is None else first.whole


def _detail(record: TrialRecord) -> str:
    """The check's own words, without the name of its grade: there is but one check a case."""
    if record.error is not None or not record.valid or not record.grades:
        broken = next(iter(record.grader_failures), None)
        return f"the check {failure_text(broken)}" if broken and not record.valid else reason_of(record)
    wanted = Verdict.PASS if record.status is TrialStatus.PASSED else Verdict.FAIL
    return next((stable(grade.reason) for grade in record.grades if grade.verdict is wanted), reason_of(record))


def harness_json(results: Sequence[HarnessResult]) -> dict[str, Any]:
    """The content of `eval_results.json`."""
    return {
        "version": 1,
        "passed": sum(result.passed is True for result in results),
        "total": len(results),
        "results": [
            {
                "name": result.name,
                "passed": result.passed,
                "status": result.status,
                "seconds": result.seconds,
                "detail": result.detail,
                "output": _kept(result.output),
            }
            for result in results
        ],
    }


def _kept(output: Any) -> Any:
    """The output as it is, else (above 64 KB) its beginning as text and the size of the whole."""
    text = output if isinstance(output, str) else dumps(output)
    return output if len(text) <= _WHOLE else shortened(text)


class _HarnessFile(BaseModel):
    version: Literal[1] = 1
    results: tuple[HarnessResult, ...]


def parse_harness_json(data: Any, origin: str) -> tuple[HarnessResult, ...]:
    """Results from the content of a file; UsageError naming `origin` when it is something else."""
    try:
        results = _HarnessFile.model_validate(data).results
    except ValidationError as error:
        raise UsageError(f"{origin}: is no file of Harness results: {first_problem(error)}") from error
    name, times = next(iter(Counter(result.name for result in results).most_common(1)), ("", 0))
    if times > 1:
        raise UsageError(f"{origin}: the name {name!r} stands there {times} times")
    return results


def read_json(path: Path) -> Any:
    """The content of a JSON file (a byte-order mark is allowed); UsageError when it cannot be read."""
    try:
        kind = problem_with_kind(path)
        if kind is not None:
            raise UsageError(f"{path}: {kind}")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise UsageError(f"{path}: is not JSON: {error}") from error


def read_harness_json(path: Path) -> tuple[HarnessResult, ...]:
    """Results from `eval_results.json`; UsageError when the file cannot be read or holds something else."""
    return parse_harness_json(read_json(path), str(path))
