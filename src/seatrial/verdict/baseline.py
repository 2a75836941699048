"""The approved baseline: `baselines/approved.json`, made to be reviewed in version control.

One line a case, in the order of their ids: passes, valid trials, digest, tallies as `[hit, of]`, sums as
`[total, trials]`, calls by tool, hand-offs as `[from, to, times]`, and the trajectory of one representative trial. What
stands out is what is unusual: a tally of n of n is `n`, a sum over all valid trials a plain number; `trials` is left
out where all were valid, `required` where every trial had to pass, `verdict` where the case passed. Everything comes
from records and traces as they were written, that is masked.

A file of up to 10,000 cases stays under 5 MB. Where it would not, less is kept of each trajectory (`detail`; what is
compared with it is cut alike), and the names of tallies, sums and tools are abbreviated, which `short` explains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from seatrial.core.case import Risk
from seatrial.core.encoding import digest, dumps
from seatrial.core.frozen import Frozen
from seatrial.core.model_json import json_of
from seatrial.core.policy import Said, iso_date
from seatrial.core.run import RunInfo
from seatrial.core.wording import said
from seatrial.errors import UsageError
from seatrial.verdict.harness_results import read_json
from seatrial.verdict.metrics import CaseResult, CaseVerdict
from seatrial.verdict.sides import Side, SideCase
from seatrial.verdict.totals import MEASURES, Sum, Tallied, Totals, Way, totals_of
from seatrial.verdict.trajectories import Detail, TraceOf, Trajectory, representative

__all__ = [
    "Baseline",
    "BaselineCase",
    "baseline_of",
    "baseline_text",
    "digests_of",
    "parse_baseline",
    "problems_with",
    "read_baseline",
    "side_of_baseline",
]

VERSION = 1
LARGEST = 4_900_000
"""Bytes of a file of up to 10,000 cases; larger ones may take as much a case."""
_BYTES_A_CASE = 490
_SAMPLE = 500
_MOST = 1e100
"""No sum over a case's trials comes near it, and sums over all cases stay numbers."""

Count = Annotated[int, Field(ge=0, strict=True)]


class BaselineCase(Frozen):
    """One case as the approved build ran it."""

    id: str = Field(min_length=1)
    suite: str
    risk: Risk = "medium"
    gate: bool = True
    """Whether its suite decides anything."""
    deterministic: bool = False
    digest: Said
    """Of the case and all it rests on: only a candidate's case of the same digest is compared."""
    passes: Count
    valid: Count
    trials: Count
    """Planned, or on record when those are more; in a file the valid ones where it is left out."""
    required: Count
    """Passes that the case needs out of `trials`; in a file all of them where it is left out."""
    verdict: CaseVerdict = CaseVerdict.PASSED
    tallies: dict[str, Tallied] = Field(default_factory=dict)
    """Of traces and grades, summed over valid trials."""
    sums: dict[str, Sum] = Field(default_factory=dict)
    """Of latency, tokens, cost, steps and judges' scores over the valid trials that know them."""
    tools: dict[str, Count] = Field(default_factory=dict)
    """Calls by tool in valid trials."""
    handoffs: tuple[Way, ...] = ()
    trajectory: Trajectory | None = None
    """Of the trial that stands for them; None where none was valid or there was no room."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        trials = data.get("trials", data.get("valid"))
        pairs = {
            "tallies": _pairs(data.get("tallies"), lambda number: (number, number)),
            "sums": _pairs(data.get("sums"), lambda number: (number, data.get("valid"))),
        }
        return {"trials": trials, "required": trials, **data, **{key: pair for key, pair in pairs.items() if pair}}

    @model_validator(mode="after")
    def _consistent(self) -> BaselineCase:
        if not self.passes <= self.valid <= self.trials:
            raise ValueError(
                f"{self.passes} passes, {self.valid} valid, {self.trials} trials: each can be no more than the next"
            )
        if self.verdict not in self._possible:
            raise ValueError(
                f"verdict {str(self.verdict)!r} does not follow from {self.passes} passes of {self.valid} valid"
                f" and {self.trials} planned trials, {self.required} required"
            )
        for name, number in self.sums.items():
            self._check_sum(name, number)
        for name, tally in self.tallies.items():
            if not all(0 <= number <= _MOST for number in tally):
                raise ValueError(f"tallies.{name}: {list(tally)}: a count is a number that is not negative")
        return self

    @property
    def _possible(self) -> set[CaseVerdict]:
        if self.passes >= self.required:
            return {CaseVerdict.PASSED}
        if self.trials - (self.valid - self.passes) < self.required:
            return {CaseVerdict.FAILED}
        return {CaseVerdict.INVALID, CaseVerdict.NOT_RUN, CaseVerdict.UNGRADED}

    def _check_sum(self, name: str, number: Sum) -> None:
        if name not in MEASURES:
            raise ValueError(f"sums.{name}: known are {', '.join(MEASURES)}")
        if not 0 <= number.total <= _MOST or not 0 <= number.counted <= self.valid:
            raise ValueError(f"sums.{name}: {list(number)} is no sum over at most {self.valid} valid trials")

    @property
    def totals(self) -> Totals:
        """The same as a side of a comparison holds it."""
        return Totals(self.sums, self.tallies, self.tools, self.handoffs)


def _pairs(held: Any, pair: Callable[[float], tuple[float, Any]]) -> Any:
    """Pairs by name, those that a file holds as one number written out."""
    if not isinstance(held, Mapping):
        return held
    return {name: pair(value) if isinstance(value, (int, float)) else value for name, value in held.items()}


class Baseline(Frozen):
    """The build that candidates are compared with, who approved it and why."""

    version: Literal[1] = 1
    build_id: str
    agent: dict[str, Any]
    """Its spec with config, to run it again."""
    approver: Said
    reason: Said
    approved: str
    """UTC, ISO 8601 with Z."""
    expires: Annotated[date, BeforeValidator(iso_date)] | None = None
    """The last day on which it holds; None: no end."""
    fresh: bool
    """Whether its trials were run for the approval, after the build was chosen."""
    run_ids: tuple[str, ...]
    digests: dict[str, str] = Field(default_factory=dict)
    """Of `judge`, `prices` and `policy`; empty text where there was none."""
    detail: Detail = Detail.FULL
    """How much is kept of each trajectory."""
    cases: tuple[BaselineCase, ...]
    """In the order of their ids."""

    @field_validator("approved")
    @classmethod
    def _in_utc(cls, text: str) -> str:
        if not text.endswith("Z"):
            raise ValueError(f"{text!r} is no time in UTC, such as 2026-01-31T12:00:00Z")
        datetime.fromisoformat(text)
        return text

    @field_validator("cases")
    @classmethod
    def _unique(cls, cases: tuple[BaselineCase, ...]) -> tuple[BaselineCase, ...]:
        (name, times), *_ = Counter(case.id for case in cases).most_common(1) or [("", 0)]
        if times > 1:
            raise ValueError(f"the case {name!r} stands there {times} times")
        return cases

    def expired(self, today: date) -> bool:
        """Whether its last day has passed."""
        return self.expires is not None and today > self.expires


# --- from runs -------------------------------------------------------------------------------------------------------


def baseline_of(  # noqa: PLR0913  a keyword each, as `approve` takes them
    results: Sequence[CaseResult],
    infos: Sequence[RunInfo],
    *,
    trace_of: TraceOf,
    approver: str,
    reason: str,
    expires: date | None = None,
    digests: Mapping[str, str] = {},
    fresh: bool,
    now: str,
) -> Baseline:
    """The baseline that these results make.

    `results` may be pooled over several runs of one build; `infos` are those runs, the first says which build. `now` is
    UTC, ISO 8601 with Z. `digests` adds to those of judge and prices, which the runs know. `trace_of` is called for the
    deciding attempt of every passing trial; what it raises passes through. Raises UsageError without approver or
    reason.
    """
    for name, text in (("approver", approver), ("reason", reason)):
        if not text.strip():
            raise UsageError(f"a baseline needs its {name}")
    whole = Baseline(
        build_id=infos[0].build_id,
        agent=infos[0].agent,
        approver=approver.strip(),
        reason=reason.strip(),
        approved=now,
        expires=expires,
        fresh=fresh,
        run_ids=tuple(info.run_id for info in infos),
        digests={**digests, **digests_of(infos[0])},
        detail=Detail.WHOLE,
        cases=tuple(_case(result, trace_of) for result in sorted(results, key=lambda result: result.case_id)),
    )
    return _fitted(whole)


def _case(result: CaseResult, trace_of: TraceOf) -> BaselineCase:
    records = [trial.last for trial in result.recorded]
    totals = totals_of(records)
    usual = representative(records, trace_of)
    return BaselineCase(
        id=result.case_id,
        suite=result.suite,
        risk=result.risk,
        gate=result.gate,
        deterministic=result.deterministic,
        digest=result.digest,
        passes=result.passes,
        valid=result.valid,
        trials=result.trials,
        required=result.required,
        verdict=result.verdict,
        tallies=dict(totals.tallies),
        sums={name: Sum(_rounded(found.total), found.counted) for name, found in totals.sums.items()},
        tools=dict(totals.tools),
        handoffs=totals.handoffs,
        trajectory=None if usual is None else usual.cut(Detail.FULL),
    )


def _rounded(number: float) -> float:
    """Six digits where it is not whole: more says nothing and makes the file hard to read."""
    return number if float(number).is_integer() else float(f"{number:.6g}")


def digests_of(info: RunInfo) -> dict[str, str]:
    """Of the judge and the price table that a run used; empty text where it had none."""
    return {name: digest(value) if value else "" for name, value in (("judge", info.judge), ("prices", info.prices))}


def _fitted(baseline: Baseline) -> Baseline:
    """The baseline with as much of its trajectories as the file has room for."""
    room = max(LARGEST, _BYTES_A_CASE * len(baseline.cases))
    for detail in (Detail.FULL, Detail.SHORT, Detail.CALLS, Detail.NAMES):
        if not _may_fit(baseline, detail, room):
            continue
        cut = _cut(baseline, detail)
        if len(baseline_text(cut).encode("utf-8")) <= room:
            return cut
    return _cut(baseline, Detail.NOTHING)


def _may_fit(baseline: Baseline, detail: Detail, room: int) -> bool:
    """Whether a sample of the cases says so: writing all of them only to see that they do not fit takes long."""
    every = max(len(baseline.cases) // _SAMPLE, 1)
    sample = baseline.model_copy(update={"cases": baseline.cases[::every]})
    size = len(baseline_text(_cut(sample, detail)).encode("utf-8"))
    return size * len(baseline.cases) <= 1.1 * room * len(sample.cases) or every == 1


def _cut(baseline: Baseline, detail: Detail) -> Baseline:
    cases = tuple(case.model_copy(update={"trajectory": _kept(case.trajectory, detail)}) for case in baseline.cases)
    return baseline.model_copy(update={"detail": detail, "cases": cases})


def _kept(trajectory: Trajectory | None, detail: Detail) -> Trajectory | None:
    return None if trajectory is None or detail is Detail.NOTHING else trajectory.cut(detail)


# --- file ------------------------------------------------------------------------------------------------------------


def baseline_text(baseline: Baseline) -> str:
    """The text of its file: the same for equal baselines, one line a case."""
    head = json_of(baseline, exclude={"cases"})
    short = {} if baseline.detail is Detail.FULL else _abbreviations(baseline.cases)
    if short:
        head["short"] = {letters: name for name, letters in short.items()}
    lines = [f"  {dumps(name)}: {dumps(value)}" for name, value in head.items()]
    cases = ",\n".join(f"    {_line(case, short)}" for case in sorted(baseline.cases, key=lambda case: case.id))
    lines.append(f'  "cases": [\n{cases}\n  ]' if cases else '  "cases": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


_NAMED = ("tallies", "sums", "tools")
"""Keys of a case whose own keys are abbreviated in large files."""


def _abbreviations(cases: Sequence[BaselineCase]) -> dict[str, str]:
    """Initials by name: `required_tool_recall/pay` is `rtr/p`, and the next one with these initials `rtr/p2`."""
    names = {name for case in cases for key in _NAMED for name in getattr(case, key)}
    taken: Counter[str] = Counter()
    short: dict[str, str] = {}
    for name in sorted(names):
        initials = "/".join("".join(word[0] for word in part.split("_") if word) for part in name.split("/"))
        taken[initials] += 1
        short[name] = initials if taken[initials] == 1 else f"{initials}{taken[initials]}"
    return short if len(set(short.values())) == len(short) else {}


def _written_out(data: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a file with its abbreviations resolved; what has another shape is left as it is."""
    short, cases = data.get("short"), data.get("cases")
    rest = {key: value for key, value in data.items() if key != "short"}
    if not isinstance(short, Mapping) or not isinstance(cases, list):
        return rest
    return rest | {"cases": [_case_written_out(case, short) for case in cases]}


def _case_written_out(case: Any, short: Mapping[str, Any]) -> Any:
    if not isinstance(case, Mapping):
        return case
    named = {key: case[key] for key in _NAMED if isinstance(case.get(key), Mapping)}
    return {
        **case,
        **{key: {str(short.get(name, name)): held for name, held in value.items()} for key, value in named.items()},
    }


def _line(case: BaselineCase, short: Mapping[str, str]) -> str:
    data = json_of(case, exclude_defaults=True)
    if case.required == case.trials:
        del data["required"]
    if case.trials == case.valid:
        del data["trials"]
    if "tallies" in data:
        data["tallies"] = {name: _short_pair(tally, tally.hit) for name, tally in case.tallies.items()}
    if "sums" in data:
        data["sums"] = {name: _short_pair(number, case.valid) for name, number in case.sums.items()}
    for name in _NAMED if short else ():
        if name in data:
            data[name] = {short[key]: value for key, value in data[name].items()}
    return dumps(data)


def _short_pair(pair: tuple[float, float], usual: float) -> Any:
    """Its first number alone where the second is the usual one."""
    first, second = (_shortest(number) for number in pair)
    return first if second == usual else [first, second]


def _shortest(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. UsageError naming file and place when it cannot be read or contradicts itself."""
    return parse_baseline(read_json(path), str(path))


def parse_baseline(data: Any, origin: str) -> Baseline:
    """The baseline that a file's content holds; UsageError naming `origin` and the place when it is something else."""
    version = data.get("version") if isinstance(data, Mapping) else None
    if version != VERSION:
        raise UsageError(f"{origin}: is no approved baseline of version {VERSION} (its version is {version!r})")
    data = _written_out(data)
    try:
        return _not_from_the_future(Baseline.model_validate(data), origin)
    except ValidationError as error:
        found = error.errors(include_url=False)
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UsageError(f"{origin}: {_place(data, found[0]['loc'])}{said(found[0])}{more}") from error


def _not_from_the_future(baseline: Baseline, origin: str) -> Baseline:
    """The baseline; a day is allowed for clocks that differ."""
    if datetime.fromisoformat(baseline.approved) > datetime.now(UTC) + timedelta(days=1):
        raise UsageError(f"{origin}: approved: {baseline.approved} is in the future")
    return baseline


def _place(data: Any, where: Sequence[int | str]) -> str:
    """`case 'refund_001': passes: `, as far as the place is known."""
    if len(where) > 1 and where[0] == "cases":
        row = data["cases"][where[1]]
        name = row.get("id") if isinstance(row, Mapping) else None
        parts = [f"case {name!r}" if isinstance(name, str) else f"cases[{where[1]}]", *map(str, where[2:])]
    else:
        parts = [str(part) for part in where]
    return "".join(f"{part}: " for part in parts)


# --- use -------------------------------------------------------------------------------------------------------------


def side_of_baseline(baseline: Baseline, path: Path | None = None) -> Side:
    """The baseline as a side of a comparison, labelled with the build, who approved it when, and `path`."""
    label = f"{baseline.build_id} (approved by {baseline.approver}, {baseline.approved[:10]})"
    if path is not None:
        label = f"{label} {path}"
    return Side(label, tuple(_side_case(case, baseline.detail) for case in baseline.cases))


def _side_case(case: BaselineCase, detail: Detail) -> SideCase:
    return SideCase(
        case_id=case.id,
        verdict=case.verdict,
        passes=case.passes,
        valid=case.valid,
        trials=case.trials,
        required=case.required,
        digest=case.digest,
        suite=case.suite,
        risk=case.risk,
        gate=case.gate,
        deterministic=case.deterministic,
        totals=case.totals,
        approved=case.trajectory,
        detail=detail,
    )


def problems_with(baseline: Baseline, info: RunInfo, *, today: date) -> list[str]:
    """Why `info`'s run must not be judged against this baseline; empty when it may.

    It expired, or another judge or price table was used, so that scores or costs do not compare. Another policy is no
    problem: the policy in force judges both.
    """
    found = []
    if baseline.expired(today):
        found.append(f"the baseline expired: its last day was {baseline.expires}; approve one anew")
    now = digests_of(info)
    for name, what in (("judge", "judge"), ("prices", "price table")):
        if baseline.digests.get(name, "") != now[name]:
            found.append(f"the baseline was approved with another {what}: its figures do not compare with this run's")
    return found
