"""What stands in a run folder, found again: one of its trials, and the agent that it was run with."""

from __future__ import annotations

import re

from seatrial.core.encoding import dumps
from seatrial.core.project import AgentSpec, Project
from seatrial.core.run import RunInfo
from seatrial.core.trial import TrialRecord
from seatrial.environment.secrets import Redactor
from seatrial.errors import UsageError, did_you_mean
from seatrial.harness.runs import Run
from seatrial.store.records import validated

__all__ = ["agent_of", "trial_of"]


def agent_of(info: RunInfo, project: Project, *, otherwise: str) -> AgentSpec:
    """The agent of a run, its masked settings put back. `otherwise` says what else to do where it cannot be had.

    Raises UsageError when it was given as an object, or a masked value is not known now; StorageError when the run's
    record of it is none.
    """
    stored = Redactor(project.secrets, project.redact).unmask(info.agent)
    masked = re.search(r"\[secret:[^\[\]]+\]", dumps(stored))
    if masked:
        raise UsageError(f"the agent's settings hold {masked[0]}, whose value is not known now; set it, or {otherwise}")
    spec = validated(AgentSpec, stored, f"run.json of run {info.run_id}: agent")
    if ":" not in (spec.target or "") and spec.command is None:
        raise UsageError(
            f"the agent of this run was given as an object ({spec.target}), so it cannot be run again; "
            f"name it as module:object, or {otherwise}"
        )
    return spec


def trial_of(run: Run, text: str) -> TrialRecord:
    """The trial that `CASE#N` means, its last attempt; without a number the first that did not pass, else the first.

    Raises UsageError with the nearest case when there is none.
    """
    case_id, number = _split(text, set(run.trials.case_ids))
    records = list(run.trials.entries(run.trials.of_case(case_id)))
    if not records:
        known = [case.id for case in run.definitions]
        if case_id in known:
            raise UsageError(f"{run.folder}: {case_id} has no trial on record: it was not run")
        hint = did_you_mean(case_id, known)
        raise UsageError(f"{run.folder} has no trial of {case_id!r}" + (f"; {hint}" if hint else ""))
    if number is None:
        return next((record for record in records if record.status != "passed"), records[0]).whole
    numbered = [record for record in records if record.trial_index == number]
    if not numbered:
        raise UsageError(f"{case_id} has trials 1 to {max(r.trial_index for r in records)}, no trial {number}")
    return numbered[-1].whole


def _split(text: str, known: set[str]) -> tuple[str, int | None]:
    case_id, mark, number = text.rpartition("#")
    if text in known or not mark or not number.isdecimal():
        return text, None
    return case_id, int(number)
