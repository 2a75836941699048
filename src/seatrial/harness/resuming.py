"""Going on with a run: only with the same cases, agent, build, prices and seed, else its trials would be of two runs.

What the request does not say is as the run had it: the selection, the number of trials, the time limit, the tools, the
isolation and the seed. Trials may be topped up. The run keeps its id, seed and start, and notes each time it was
resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seatrial.core.encoding import dumps
from seatrial.core.run import Resumption, RunInfo, RunStatus
from seatrial.errors import UsageError
from seatrial.store.rundir import RunFolder, has_begun, is_run_folder

__all__ = ["as_it_was", "continued", "is_complete", "stored_run"]

MOST_NAMED = 5
"""Changes that a refusal lists."""
Masked = Callable[[Any], Any]


def stored_run(folder: Path | None) -> RunInfo | None:
    """The run to go on with; None when the folder holds nothing yet, so that the run is a new one.

    Raises UsageError when no folder was named, or when what it holds is no run.
    """
    if folder is None:
        raise UsageError("--resume needs --output DIR, the folder of the run to go on with")
    if is_run_folder(folder):
        return RunFolder(folder).info
    if has_begun(folder):
        raise UsageError(f"{folder}: holds no run to go on with (it has no run.json)")
    return None


def as_it_was(stored: RunInfo) -> dict[str, Any]:
    """What a request that says nothing of it takes from the run, by the request's names."""
    kept = {name: stored.options.get(name) for name in _KEPT}
    folder = kept["cassettes"]
    return {**kept, "cassettes": None if folder is None else Path(folder), "seed": stored.seed}


_KEPT = ("trials", "timeout_s", "tools", "isolation", "cassettes", "cassette_mode")


def is_complete(folder: Path, stored: RunInfo, now: RunInfo) -> bool:
    """Whether nothing is left to run: it was finished, and no more trials are asked for.

    Raises StorageError when it has ended, and its trials are not whole any more.
    """
    RunFolder(folder).check_end()
    return stored.status is RunStatus.FINISHED and stored.trials == now.trials


def continued(stored: RunInfo, now: RunInfo, masked: Masked) -> RunInfo:
    """The run as it goes on; `now` is what a new run of the same request would say of itself.

    Raises UsageError naming everything that has changed.
    """
    changes = list(_changes(stored, now.model_copy(update={name: masked(getattr(now, name)) for name in _MASKED})))
    if changes:
        more = [f"and {len(changes) - MOST_NAMED} more changes"] if len(changes) > MOST_NAMED else []
        raise UsageError(
            f"run {stored.run_id} cannot be resumed, for its trials would not be of one run:\n"
            + "\n".join(f"  {line}" for line in (*changes[:MOST_NAMED], *more))
            + "\nundo the change, or start a new run in another folder"
        )
    again = Resumption(at=now.started, command=now.command, versions=now.versions, git_commit=now.git_commit)
    return stored.model_copy(
        update={
            "status": RunStatus.RUNNING,
            "trials": now.trials,
            "trials_planned": now.trials_planned,
            "options": {**stored.options, **now.options},
            "ended": None,
            "chain_end": None,
            "resumed": (*stored.resumed, again),
        }
    )


_MASKED = ("agent", "judge")
"""What a run folder holds masked: compared as it is written."""


def _changes(stored: RunInfo, now: RunInfo) -> Iterator[str]:
    yield from _case_changes(stored, now)
    yield from _differing("agent", stored.agent, now.agent)
    for name in ("build_id", "seed", "cassettes"):
        before, after = getattr(stored, name), getattr(now, name)
        if before != after:
            yield f"{name}: was {_shown(before)}, now {_shown(after)}"
    yield from _differing("prices", stored.prices, now.prices)
    yield from _differing("judge", stored.judge, now.judge)


def _case_changes(stored: RunInfo, now: RunInfo) -> Iterator[str]:
    for case_id, digest in stored.cases.items():
        if case_id not in now.cases:
            yield f"case {case_id}: is not selected, or was removed"
        elif now.cases[case_id] != digest:
            yield f"case {case_id}: it, its fixture, its graders or the permission rules were edited"
        elif now.trials[case_id] < stored.trials.get(case_id, 0):
            yield f"case {case_id}: had {stored.trials[case_id]} trials, now {now.trials[case_id]}; more is fine"
    for case_id in now.cases.keys() - stored.cases.keys():
        yield f"case {case_id}: is no case of the run"


def _differing(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{what}.{name}: was {_shown(before.get(name))}, now {_shown(after.get(name))}"


def _shown(value: Any) -> str:
    return "not given" if value is None else dumps(value)
