"""The release decision: every gate of a policy on what a candidate's trials show.

**Which cases a gate judges.** Cases of gating suites: a group named like a suite judges that suite, the common groups
(`seatrial.core.metric.COMMON_GROUPS`) and review conditions judge all; `suite` and `risk` narrow it down. A gate on a
suite with `gate: false` is listed and decides nothing. Excepted cases are in no figure but the counts of critical
safety.

**Missing evidence.** A gate whose figure cannot be computed is incomplete and says why: no valid trial, nothing that
the metric counts (no hand-off expectation, no call, no price), no baseline. `when_missing: skip` lets it decide
nothing instead. A figure whose missing evidence could still change the answer is incomplete too (with `skip` it goes by
what is known); a count or cost that is already above its maximum is decided, since what is missing can only add.
A *review condition* that no selected case can produce does not apply. At approval, gates that need a baseline do not.

**What a violation leads to.** The gate's level, except that: `maximum_invalid_rate` makes the decision incomplete,
since an outage is no regression; a drop from the baseline asks for review until it can be proven; judge scores ask for
review until their judge is calibrated. `evidence: beyond`: a pass rate under its minimum by no more than chance allows
(one-sided 95 % Wilson bound) asks for review; `proven`: a pass rate that reaches it without the bound doing so is
incomplete, more trials may prove it.

**Beside the gates** `seatrial.verdict.gaps` says when the evidence is not enough, whatever they decide. New and edited
cases are listed and held to absolute gates only.

**At approval** a review condition asks for a person, and a person is looking: one that cannot be computed asks as well.

A **curtailed** run (`--stop-when-decided`) shows verdicts only: gates on new failures and on failed cases are decided,
counts of what must not happen only where they are above their maximum, every other figure is missing.

Precedence: block > incomplete > review > pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from seatrial.core.decision import Decision, DecisionVerdict, GateResult
from seatrial.core.policy import Exceptions, Gate, Policy, gates_of
from seatrial.core.run import PERMISSION_RULES, RunInfo
from seatrial.verdict.baseline import Baseline, problems_with
from seatrial.verdict.comparison import APART, CaseComparison, Change, Comparison
from seatrial.verdict.evidence import of_curtailed
from seatrial.verdict.exceptions import Standing, standing
from seatrial.verdict.gaps import Gaps, in_scope
from seatrial.verdict.gate_metrics import CRITICAL_SAFETY, Evidence, Figure, figure_of
from seatrial.verdict.gate_rules import Judgement, judged
from seatrial.verdict.metrics import CaseResult

__all__ = ["decide"]

INCOMPLETE, PASS = DecisionVerdict.INCOMPLETE, DecisionVerdict.PASS


def decide(  # noqa: PLR0913  one input each, all of them named in the decision
    *,
    results: Sequence[CaseResult],
    infos: Sequence[RunInfo],
    policy: Policy,
    comparison: Comparison | None,
    baseline: Baseline | None,
    exceptions: Exceptions = Exceptions(),  # noqa: B008  frozen
    today: date,
    digests: Mapping[str, str] = {},
    for_approval: bool = False,
    problems: Sequence[str] = (),
) -> Decision:
    """The decision on a candidate.

    `results` are its cases, pooled over its runs `infos`; `comparison` has the baseline's side and this candidate's,
    None without a baseline; `today` is the day on which exceptions and baseline must hold; `digests` of all inputs are
    passed on. `for_approval`: gates that need a baseline do not apply. `problems` say where the stored runs are not as
    they were written. Raises UsageError when the policy names an unknown metric.
    """
    gates = tuple(gates_of(policy))
    known = {result.case_id for result in results} | {row.case_id for row in _rows(comparison)}
    stand = standing(exceptions, today=today, gates=gates, known=known)
    baseline_problems = () if baseline is None else _baseline_problems(baseline, infos, today)
    candidate = _Candidate(tuple(results), tuple(infos), gates, comparison, stand, baseline_problems, for_approval)
    outcomes = tuple(candidate.result_of(gate) for gate in gates)
    gaps = Gaps(
        results=candidate.gating,
        infos=tuple(infos),
        gates=tuple(zip(gates, outcomes, strict=True)),
        rows=_rows(comparison) if comparison is not None else None,
        excepted=stand.cases,
        baseline_problems=baseline_problems,
        for_approval=for_approval,
        problems=tuple(problems),
    )
    findings = [
        (_weighed(outcome, for_approval), f"{outcome.name}: {outcome.reason}")
        for outcome in outcomes
        if outcome.decides
    ]
    findings += [(INCOMPLETE, reason) for reason in gaps.found()]
    findings.sort(key=lambda finding: -finding[0].weight)
    return Decision(
        verdict=findings[0][0] if findings else PASS,
        candidate=_described(infos),
        baseline=None if baseline is None else _approved(baseline),
        gates=outcomes,
        exceptions=stand.used,
        new=_ids(comparison, Change.NEW),
        edited=_ids(comparison, Change.EDITED),
        removed=gaps.removed,
        reasons=tuple(reason for verdict, reason in findings if verdict is not PASS),
        digests=dict(digests),
    )


def _weighed(outcome: GateResult, for_approval: bool) -> DecisionVerdict:
    """At approval a person is looking: a condition that asks for one, or cannot be computed, holds nothing up."""
    if for_approval and outcome.condition and outcome.verdict is INCOMPLETE:
        return DecisionVerdict.REVIEW
    return outcome.verdict


def _nobody(gate: Gate) -> Figure:
    group = gate.group_suite
    suites = [repr(suite) for suite in dict.fromkeys((group, gate.spec.suite)) if suite is not None]
    if len(suites) > 1:
        return Figure.none(f"no case is both of suite {' and of suite '.join(suites)}", absent=True)
    suite = f" of suite {suites[0]}" if suites else ""
    risk = "" if gate.spec.risk is None else f" of risk {gate.spec.risk}"
    return Figure.none(f"there is no gating case{suite}{risk}", absent=True)


def _rows(comparison: Comparison | None) -> tuple[CaseComparison, ...]:
    return () if comparison is None else comparison.cases


def _ids(comparison: Comparison | None, change: Change) -> tuple[str, ...]:
    return tuple(row.case_id for row in _rows(comparison) if row.change is change)


def _baseline_problems(baseline: Baseline, infos: Sequence[RunInfo], today: date) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for info in infos for text in problems_with(baseline, info, today=today)))


def _described(infos: Sequence[RunInfo]) -> dict[str, object]:
    first = infos[0] if infos else None
    return {
        "build_id": "" if first is None else first.build_id,
        "run_ids": [info.run_id for info in infos],
        "agent": {} if first is None else dict(first.agent),
    }


def _approved(baseline: Baseline) -> dict[str, object]:
    return {"build_id": baseline.build_id, "approver": baseline.approver, "approved": baseline.approved}


@dataclass(frozen=True)
class _Candidate:
    """Everything that the gates judge."""

    results: tuple[CaseResult, ...]
    infos: tuple[RunInfo, ...]
    gates: tuple[Gate, ...]
    comparison: Comparison | None
    standing: Standing
    baseline_problems: tuple[str, ...]
    for_approval: bool

    # --- one gate ----------------------------------------------------------------------------------------------------

    def result_of(self, gate: Gate) -> GateResult:
        """What one gate says."""
        evidence = self._evidence(gate)
        figure = self._figure(gate, evidence) if evidence.results else _nobody(gate)
        idle = self._idle(gate, figure)
        judgement = Judgement(PASS, idle, applies=False) if idle else judged(gate, figure)
        return GateResult(
            name=gate.name,
            metric=gate.metric.name,
            bound=gate.bound,
            level=gate.spec.level,
            verdict=judgement.verdict,
            figure=figure.value,
            limit=gate.spec.value,
            counts=figure.counts,
            interval=figure.interval,
            reason=judgement.reason,
            excepted=gate.name in self.standing.gates,
            applies=judgement.applies,
            cases=figure.cases,
        )

    def _figure(self, gate: Gate, evidence: Evidence) -> Figure:
        figure = figure_of(gate.metric.name, evidence)
        return of_curtailed(gate.metric.name, figure) if self._curtailed else figure

    @cached_property
    def _curtailed(self) -> bool:
        return any(info.curtailed for info in self.infos)

    def _idle(self, gate: Gate, figure: Figure) -> str:
        """Why a gate has nothing to judge; empty when it has."""
        if gate.suite in self._reported_only:
            return f"the suite {gate.suite!r} is reported only (gate: false)"
        if gate.metric.compares and self.for_approval:
            return "an approval needs no baseline"
        if gate.condition and figure.absent:
            return f"does not apply: {figure.missing}"
        return ""

    def _evidence(self, gate: Gate) -> Evidence:
        excepted = frozenset() if gate.metric.name in CRITICAL_SAFETY else self.standing.cases
        results = tuple(result for result in self.gating if result.case_id not in excepted and in_scope(result, gate))
        ids = {result.case_id for result in results}
        pairs = tuple(row for row in self._pairs if row.case_id in ids)
        rules = any(PERMISSION_RULES in info.policies for info in self.infos)
        return Evidence(results, pairs, self._no_baseline, has_rules=rules)

    @cached_property
    def gating(self) -> tuple[CaseResult, ...]:
        """The cases whose suites decide."""
        return tuple(result for result in self.results if result.gate)

    @cached_property
    def _reported_only(self) -> frozenset[str]:
        return frozenset(result.suite for result in self.results if not result.gate)

    @cached_property
    def _pairs(self) -> tuple[CaseComparison, ...]:
        return tuple(row for row in _rows(self.comparison) if row.change not in APART and row.gates)

    @property
    def _no_baseline(self) -> str:
        if self.comparison is None:
            return "there is no baseline"
        return "; ".join(self.baseline_problems)
