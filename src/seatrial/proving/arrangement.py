"""One order of cases, run in this process, which is as fresh as its caller made it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.core.ledger import Counted
from seatrial.core.ports import PlannedCase
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.harness.cassettes import model_urls
from seatrial.harness.importing import importable
from seatrial.harness.misfits import refuse_misfit
from seatrial.harness.plan import Plan
from seatrial.proving.census import Census, census, changes
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.trial import TrialSettings
from seatrial.verdict.isolation import Seen, seen_in

__all__ = ["Arrangement", "play"]

Tell = Callable[[Mapping[str, Any]], None]
"""Takes what happened as JSON data, as it happens."""


@dataclass(frozen=True)
class Arrangement:
    """Cases in the order in which they run; one may stand there several times."""

    cases: tuple[str, ...]
    concurrency: int = 1
    suspects: bool = False
    """Whether to look at what the others change before the last one runs."""


@dataclass
class _InOrder:
    """A TrialSource of exactly these trials, and what is to be told of them. Each is a first trial, equal in seed."""

    planned: Sequence[PlannedCase]
    watch: bool
    root: Path
    tell: Tell
    hidden: frozenset[str]
    masked: Callable[[Any], Any]
    _started: int = 0
    _ended: int = 0
    _before: Census = field(default_factory=dict)

    def next(self) -> tuple[PlannedCase, int] | None:
        if self._started == len(self.planned):
            return None
        if self.watch and self._started == 0:
            self._before = census(self.root)
        if self.watch and self._started == len(self.planned) - 1:
            self.told_changes()
        self._started += 1
        return self.planned[self._started - 1], 1

    def told_changes(self) -> None:
        found = changes(self._before, census(self.root))
        self.tell({"changes": self.masked([dataclasses.asdict(change) for change in found])})

    def finished(self, record: Counted) -> None:
        seen = seen_in(record.whole)
        if record.case_id in self.hidden:
            seen = Seen({name: text for name, text in seen.features.items() if not name.startswith("outcome ")})
        self.tell({"case": record.case_id, **self.masked({"features": dict(seen.features), "reason": seen.reason})})


class _Nowhere:
    """A Sink that keeps nothing. Misfit where settings that hold for every trial kept the agent from running."""

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        if trace.error is not None:
            refuse_misfit(trace.error)
        return record


def play(planned: Plan, arrangement: Arrangement, tell: Tell) -> None:
    """Run the arrangement and tell of every trial as it ends, and of what changed before the last one."""
    cases = {item.case.id: item for item in planned.cases}
    root = Path(planned.project.root)
    together = arrangement.concurrency > 1
    source = _InOrder(
        [cases[name] for name in arrangement.cases],
        arrangement.suspects and not together,
        root,
        tell,
        planned.hidden,
        planned.redactor.value,
    )
    settings = TrialSettings(
        prices=planned.project.prices, seed=planned.info.seed, model_urls=model_urls(planned.project)
    )
    with importable(planned.project.root):
        if together and arrangement.suspects:
            source._before = census(root)
        LocalExecutor(planned.agent, settings, arrangement.concurrency).run(source, _Nowhere())
        if together and arrangement.suspects:
            source.told_changes()
    planned.scratch.remove()
