"""The kit's doors: one situation, or all of them, for one framework."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.core.encoding import dumps, to_json
from seatrial.core.trace import Observable
from seatrial.core.trial import InvalidReason
from seatrial.errors import UsageError, did_you_mean
from seatrial.testing.conformance.checks import check_trace
from seatrial.testing.conformance.claims import check_shown_somewhere, shown_by
from seatrial.testing.conformance.driving import Finished, adapter_of, run_plan
from seatrial.testing.conformance.expected import Body, Facts, Plan
from seatrial.testing.conformance.findings import Findings
from seatrial.testing.conformance.names import SITUATIONS
from seatrial.testing.conformance.report import Outcome, Problem, Report, Result
from seatrial.testing.conformance.script import Framework, ways_of
from seatrial.testing.conformance.situations import plans

__all__ = ["check", "check_situation", "declared_by", "name_of", "prove"]


def check(framework: Framework) -> Report:
    """Every situation, in order. UsageError when the framework names situations or an adapter that do not exist."""
    return Report(name_of(framework), tuple(check_situation(framework, situation) for situation in SITUATIONS))


def prove(framework: Framework, situation: str) -> Result:
    """One situation. AssertionError with every problem in plain words; else its result, which may be absent or not
    observed."""
    result = check_situation(framework, situation)
    if result.problems:
        shown = "\n".join(f"- {problem}" for problem in result.problems)
        raise AssertionError(f"{name_of(framework)} does not pass {situation} ({SITUATIONS[situation]})\n{shown}")
    return result


def name_of(framework: Framework) -> str:
    """What reports call it."""
    return getattr(framework, "name", "") or framework.kind


def check_situation(framework: Framework, situation: str) -> Result:
    """One situation, whatever comes of it. UsageError for a name that does not exist."""
    for name in (situation, *framework.absent):
        if name not in SITUATIONS:
            raise UsageError(f"there is no situation {name!r}; {did_you_mean(name, list(SITUATIONS))}")
    facts = _facts(framework)
    plan = plans[situation](facts)
    if situation in framework.absent:
        return _absent(situation, plan, facts, framework.absent)
    if not facts.observes(*plan.about) and plan.only_if_observed:
        return Result(situation, Outcome.NOT_OBSERVED, unobserved=plan.about)
    return _result(situation, plan, facts, run_plan(framework, plan))


def declared_by(framework: Framework) -> frozenset[Observable]:
    """What its trials may observe: what the adapter declares, and what the framework adds."""
    return _facts(framework).declared


def _facts(framework: Framework) -> Facts:
    always = frozenset(Observable(name) for name in adapter_of(framework).observes)
    more = frozenset(getattr(framework, "observes", ()))
    return Facts(ways_of(framework), always | more, framework.own_call_ids, always)


def _absent(situation: str, plan: Plan, facts: Facts, absent: Mapping[str, str]) -> Result:
    """A situation that the framework does not have: no excuse for what is declared and shown nowhere else."""
    findings = Findings(situation)
    elsewhere = [plans[other](facts) for other in SITUATIONS if other not in absent]
    check_shown_somewhere(findings, plan, elsewhere, facts)
    outcome = Outcome.FAILED if findings.problems else Outcome.ABSENT
    return Result(situation, outcome, tuple(findings.problems), reason=absent[situation])


def _result(situation: str, plan: Plan, facts: Facts, trials: list[Finished]) -> Result:
    problems = tuple(_problems(situation, plan, facts, trials))
    shown = shown_by(plan.expected(1), facts.ways)
    seen, unseen = shown & facts.declared, frozenset((shown | plan.about) - facts.declared)
    outcome = Outcome.PASSED if facts.observes(*plan.about) else Outcome.NOT_OBSERVED
    return Result(situation, Outcome.FAILED if problems else outcome, problems, observed=seen, unobserved=unseen)


def _problems(situation: str, plan: Plan, facts: Facts, trials: list[Finished]) -> list[Problem]:
    problems: list[Problem] = []
    for trial in trials:
        findings = Findings(situation, trial.index if plan.trials > 1 else None)
        _check_valid(findings, trial)
        check_trace(findings, plan.expected(trial.index), trial.trace, facts)
        problems += findings.problems
    whole = Findings(situation)
    whole.equal("number of trials", plan.trials, len(trials))
    whole.equal("tools that ran", _in_any_order(plan.bodies), _in_any_order(tuple(plan.ledger.entries)))
    if plan.ends is not None and facts.observes(Observable.TOOL_CALLS):
        whole.equal("calls in the order of their ends", list(plan.ends.expected), list(plan.ends.seen.values()))
    return problems + whole.problems


def _check_valid(findings: Findings, trial: Finished) -> None:
    broken = trial.record.invalid_reason
    if broken is not None and broken is not InvalidReason.UNOBSERVED:
        findings.add("validity of the trial", None, f"{broken}: {trial.record.detail}")


def _in_any_order(bodies: tuple[Body, ...]) -> list[str]:
    return sorted(f"{name} {dumps(to_json(dict(arguments)), sort_keys=True)}" for name, arguments in bodies)
