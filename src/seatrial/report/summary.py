"""The one place that turns results into rows: the content of `results.json`, which every report shows.

Rows stand in the order of the selection; equal behaviour gives equal text. What differs between two runs that behave
alike - durations, times of day, ids, seeds - stands under `times` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from seatrial.core.case import Case
from seatrial.core.encoding import SHOWN, dumps, shortened
from seatrial.core.grade import Grade, GraderFailure
from seatrial.core.ledger import Entry, Likeness, Reason, told_of
from seatrial.core.run import RunInfo
from seatrial.core.trace import AgentError
from seatrial.core.trial import Tokens, TrialRecord, TrialStatus
from seatrial.errors import ExitCode
from seatrial.report.lazily import Lazily, rows_of, whole
from seatrial.verdict.figures import (
    CostFigure,
    Measured,
    agreement,
    cost_figure,
    first_attempt,
    latency,
    mean_steps,
    mean_tokens,
    measured,
    problems,
    saved,
    stops,
)
from seatrial.verdict.metrics import CaseResult, case_results, exit_code, kinds_of
from seatrial.verdict.rows import (
    PassRate,
    Ratio,
    SuiteRow,
    ToolRow,
    case_counts,
    grader_rows,
    grader_rows_of,
    handoff_rows,
    suite_row,
    suite_rows,
    tally_sums,
    tool_rows,
)
from seatrial.verdict.trials import Alike, Cost, Trial, failure_text, reason_of, stable

__all__ = ["RESULTS_VERSION", "VERDICTS", "summary", "summary_of", "whole"]

RESULTS_VERSION = 1

VERDICTS = {
    ExitCode.PASS: "pass",
    ExitCode.FAILED: "failed",
    ExitCode.REVIEW: "review",
    ExitCode.INCOMPLETE: "incomplete",
}
"""The verdict on a run or a comparison in a word, by its exit code."""


def summary(info: RunInfo, cases: Sequence[Case], records: Iterable[TrialRecord]) -> dict[str, Any]:
    """The content of `results.json`, as JSON data.

    `{version, suites, cases, graders, figures, problems, times}`; a rate or mean of nothing is None, with its
    counts beside it.
    """
    return whole(summary_of(info, cases, case_results(info, cases, records)))


def summary_of(info: RunInfo, cases: Sequence[Case], results: Sequence[CaseResult]) -> dict[str, Any]:
    """The same from results, which may be those of several runs together; `info` then speaks for all of them.

    Rows of cases and trials are made as they are looked at (`Lazily`); `whole` makes them all.
    """
    kinds, taken, suites = kinds_of(results), measured(results), suite_rows(results)
    every = suites[0] if len(suites) == 1 else suite_row("", results)
    return {
        "version": RESULTS_VERSION,
        "suites": [_suite(row) for row in suites],
        "cases": Lazily(results, _Cases().row),
        "graders": [_row(row) for row in grader_rows(results, cases)],
        "figures": _figures(info, results, every, kinds, taken),
        "problems": [_row(problem) for problem in problems(info, results)],
        "times": _times(info, results, taken),
    }


def _row(row: object) -> dict[str, Any]:
    """A flat dataclass as a mapping (`dataclasses.asdict` copies every value: seconds on a large run)."""
    return dict(vars(row))


def _rate(rate: PassRate | None) -> dict[str, Any] | None:
    return None if rate is None else {**_row(rate), "pooled": rate.pooled}


def _ratio(ratio: Ratio | None) -> dict[str, Any] | None:
    return None if ratio is None else {"rate": ratio.rate, "hit": ratio.hit, "of": ratio.of}


def _suite(row: SuiteRow) -> dict[str, Any]:
    trials = {**row.trials, "saved": row.saved}
    return {"suite": row.suite, "gate": row.gate, "cases": row.cases, "trials": trials, "rate": _rate(row.rate)}


# --- cases -----------------------------------------------------------------------------------------------------------


class _Cases:
    """Makes the rows of cases and of their trials; what those that went alike have in common is made once."""

    def __init__(self) -> None:
        self._graders: dict[int, list[dict[str, Any]]] = {}
        self._kinds: dict[int, _Kind] = {}

    def row(self, result: CaseResult) -> dict[str, Any]:
        """One case with its trials."""
        return {
            "id": result.case_id,
            "suite": result.suite,
            "risk": result.risk,
            "gate": result.gate,
            "deterministic": result.deterministic,
            "verdict": str(result.verdict),
            "passes": result.passes,
            "valid": result.valid,
            "trials": result.trials,
            "run": result.run,
            "required": result.required,
            "rate": result.rate,
            "reason": result.reason,
            "invalid": result.invalid,
            "digest": result.digest,
            "grades": self._graders_of(result),
            "trials_detail": rows_of(result.recorded, self._trial),
        }

    def _graders_of(self, result: CaseResult) -> list[dict[str, Any]]:
        rows = self._graders.get(id(result.kinds))  # cases that went alike share one counting
        if rows is None:
            rows = self._graders[id(result.kinds)] = [_row(row) for row in grader_rows_of(result)]
        return [*map(dict, rows)]

    def _trial(self, trial: Trial) -> dict[str, Any]:
        last = trial.last
        alike = last.alike
        kind = self._kinds.get(id(alike))
        if kind is None:
            kind = self._kinds[id(alike)] = _Kind(alike)
        record = None if kind.well else last.whole
        told = last.told if record is None else told_of(record)
        row = kind.common.copy()
        row["trial"] = last.trial_index
        row["output"] = _shown(told["output"], told["output_file"])
        row["outcome"] = told["outcome"]
        row["grades"] = kind.grades(told["grades"])
        if told["error"] is not None:
            row["error"] = _error(told["error"])
        spent = last.spent
        row["tokens"], row["cost_usd"] = _tokens(spent.tokens or last.tokens), spent.cost_usd
        if len(trial.attempts) > 1:
            row["last_attempt"] = {"tokens": row["tokens"], "cost_usd": row["cost_usd"]}
            row |= {"attempts": len(trial.attempts), "tokens": _tokens(trial.tokens), "cost_usd": trial.cost_usd}
        if record is not None:
            row["reason"] = reason_of(record)
            row["grader_failures"] = [_failure(failure) for failure in record.grader_failures]
        return row


class _Kind:
    """What trials of one likeness have in common, as a row."""

    def __init__(self, alike: Likeness) -> None:
        self.well = alike.status is TrialStatus.PASSED and not alike.grader_failures
        """Whether there is no more to tell than what is told of every trial."""
        self.common = _in_common(alike)
        self._said: list[Reason] = []
        self._grades: list[dict[str, Any]] = []

    def grades(self, said: list[Reason]) -> list[dict[str, Any]]:
        """The rows of grades with these reasons; trials that follow one another often say the same."""
        if said != self._said:
            rows = zip(self.common["grades"], said, strict=True)
            self._grades = [{**grade, "reason": stable(each["reason"])} for grade, each in rows]
            self._said = said
        return [*map(dict, self._grades)]


def _in_common(kind: Likeness) -> dict[str, Any]:
    """The row of a trial, every column in its place, with what all trials of this kind share."""
    return {
        "trial": 0,
        "attempts": 1,
        "status": str(kind.status),
        "invalid_reason": None if kind.invalid_reason is None else str(kind.invalid_reason),
        "stop_reason": str(kind.stop_reason),
        "reason": "",
        "error": None,
        "output": None,
        "outcome": None,
        "steps": kind.steps,
        "tools": kind.tools,
        "handoffs": [list(pair) for pair in kind.handoffs],
        "tokens": None,
        "cost_usd": None,
        "last_attempt": None,  # what the deciding attempt took alone, where it is not the only one
        "grades": [_grade(grade) for grade in kind.grades],
        "grader_failures": [],
    }


def _failure(failure: GraderFailure) -> dict[str, Any]:
    return {"name": failure.name, "reason": failure_text(failure), "required": failure.required}


def _tokens(tokens: Tokens) -> dict[str, Any]:
    return {"input": tokens.input, "output": tokens.output}


def _grade(grade: Grade) -> dict[str, Any]:
    return {
        "name": grade.name,
        "verdict": str(grade.verdict),
        "score": grade.score,
        "required": grade.required,
        "reason": "",
    }


def _error(data: dict[str, Any]) -> str:
    return stable(AgentError.model_validate(data).summary)


def _shown(output: Any, file: str | None) -> Any:
    """The output as it is when it is short, else its first 2 KB as text with the size of the whole."""
    if file is not None or output is None:
        return output
    text = output if isinstance(output, str) else dumps(output)
    return shortened(text) if len(text) > SHOWN else output


# --- figures ---------------------------------------------------------------------------------------------------------


def _figures(
    info: RunInfo, results: Sequence[CaseResult], every: SuiteRow, kinds: Sequence[Alike], taken: Measured
) -> dict[str, Any]:
    retried = sum(result.recorded.retried for result in results)
    gating = [result for result in results if result.gate]
    return {
        "verdict": VERDICTS[exit_code(info, results)],
        "cases": every.cases,
        "gating_cases": case_counts(gating),
        "trials": {**every.trials, "saved": every.saved, "retried": retried, "stops": stops(kinds)},
        "pass_rate": _rate(every.rate),
        "first_attempt": _row(first_attempt(results)),
        "consistency": _row(agreement(results)),
        "steps": {unit: _row(mean) for unit, mean in mean_steps(kinds).items()},
        "tokens": {kind: _row(mean) for kind, mean in mean_tokens(taken).items()},
        "cost": _cost(cost_figure(taken, every.trials["passed"])),
        "saved": None if (spared := saved(info, results)) is None else _row(spared),
        "tools": [_tool(row) for row in tool_rows(kinds)],
        "handoffs": [_row(row) for row in handoff_rows(kinds)],
        "tallies": {name: _ratio(ratio) for name, ratio in tally_sums(kinds).items()},
    }


def _tool(row: ToolRow) -> dict[str, Any]:
    return {**_row(row), "recall": _ratio(row.recall), "precision": _ratio(row.precision)}


def _cost(figure: CostFigure) -> dict[str, Any]:
    return {
        "total": _money(figure.total),
        "valid": _money(figure.valid),
        "retried": _money(figure.retried),
        "invalid": _money(figure.invalid),
        "judges": _money(figure.judges),
        "per_success_usd": figure.per_success_usd,
        "passes": figure.passes,
    }


def _money(cost: Cost) -> dict[str, Any]:
    return {"usd": cost.usd, **_row(cost)}


# --- what differs from run to run ------------------------------------------------------------------------------------


def _times(info: RunInfo, results: Sequence[CaseResult], taken: Measured) -> dict[str, Any]:
    return {
        "run_id": info.run_id,
        "build_id": info.build_id,
        "started": info.started,
        "ended": info.ended,
        "seed": info.seed,
        "cassettes": info.cassettes or None,
        "latency": _row(latency(taken)),
        "trials": Lazily(_Deciding(results), _time),
    }


def _time(last: Entry) -> dict[str, Any]:
    kind = last.alike
    return {
        "id": last.case_id,
        "trial": last.trial_index,
        "started": last.started,
        "ms": last.latency_ms,
        "recorded": kind.recorded,
        "replayed": kind.replayed,
    }


class _Deciding(Sequence[Entry]):
    """The deciding attempts of all cases, one case after another."""

    def __init__(self, results: Sequence[CaseResult]) -> None:
        self._results = results

    def __len__(self) -> int:
        return sum(result.run for result in self._results)

    def __iter__(self) -> Iterator[Entry]:
        return chain.from_iterable(result.recorded.deciding for result in self._results)

    def __getitem__(self, number: Any) -> Any:
        return tuple(self)[number]
