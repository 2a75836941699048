"""Spans on file in place of an agent: what it did elsewhere is graded as it stands."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.agents.otel.evidence import note_evidence
from seatrial.agents.otel.files import SpanFile, read_spans
from seatrial.agents.otel.meaning import Role, role_of, said_by
from seatrial.agents.otel.replay import play
from seatrial.agents.otel.span import Span
from seatrial.agents.otel.tree import SpanTree
from seatrial.agents.otel.values import parsed
from seatrial.core import genai
from seatrial.core.ids import file_name
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.trace import Observable
from seatrial.environment.failure import FixtureError
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["RecordedSpans"]

_SUFFIXES = (".json", ".jsonl")


class RecordedSpans:
    """A file or folder of spans."""

    kind = "otel"
    blocking = True
    observes: frozenset[Observable] = frozenset()

    def __init__(self, target: str) -> None:
        """UsageError when there is no such file or folder."""
        self._path = _found(target)

    @cached_property
    def _by_case(self) -> dict[str, list[SpanFile]]:
        """The traces of a file for many cases, by what they name as theirs, in the order in which they began."""
        file = read_spans(self._path)
        traces: dict[str, list[Span]] = defaultdict(list)
        for span in file.spans:
            traces[span.trace_id].append(span)
        found: dict[str, list[SpanFile]] = defaultdict(list)
        for spans in sorted(traces.values(), key=_began):
            found[_case_of(spans)].append(SpanFile(tuple(spans), file.final_output))
        return found

    def open(self, trial: TrialEnvironment) -> RecordedSession:
        """The spans of this trial. FixtureError when there are none: that is not the agent's failure."""
        try:
            file = self._of(trial.case.id, trial.trial_index)
        except UsageError as error:
            raise FixtureError(str(error)) from error
        return RecordedSession(file, trial)

    def _of(self, case_id: str, trial_index: int) -> SpanFile:
        if self._path.is_dir():
            return _of_one_trial(self._file_of(case_id, trial_index), case_id)
        traces = self._by_case.get(f"{case_id}#{trial_index}") or self._by_case.get(case_id, [])
        place = 0 if f"{case_id}#{trial_index}" in self._by_case else trial_index - 1
        if len(traces) > place + 1:
            print(f"{self._path} has {len(traces)} traces of {case_id}; this trial is number {place + 1}")  # noqa: T201
        if place >= len(traces):
            raise UsageError(f"{self._path}: has no spans of {case_id}#{trial_index}")
        return traces[place]

    def _file_of(self, case_id: str, trial_index: int) -> Path:
        names = [f"{case_id}#{trial_index}"] if trial_index > 1 else [f"{case_id}#1", case_id]
        candidates = [self._path / f"{file_name(name)}{suffix}" for name in names for suffix in _SUFFIXES]
        candidates += [self._path / f"{name}{suffix}" for name in names for suffix in _SUFFIXES if "/" not in name]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise UsageError(f"{self._path}: has no spans of {case_id}#{trial_index}; it would be {candidates[0].name}")
        return found


def _of_one_trial(path: Path, case_id: str) -> SpanFile:
    """A file that is one trial's alone. UsageError when it names another case, or holds several traces."""
    file = read_spans(path)
    tree = SpanTree(file.spans)
    others = sorted(tree.cases - {case_id})
    if others:
        raise UsageError(f"{path}: these spans name another case, {others[0]}")
    if len(tree.trace_ids) > 1:
        raise UsageError(f"{path}: holds {len(tree.trace_ids)} traces; a file of a folder is one trial")
    return file


def _found(target: str) -> Path:
    """A path relative to the working folder or, like modules, to the project."""
    tried = [Path(base) / target for base in ("", *sys.path)]
    path = next((path for path in tried if path.exists()), None)
    if path is None:
        raise UsageError(f"agent {target!r}: there is no such file or folder of spans")
    return path


def _began(spans: Iterable[Span]) -> int:
    return min(span.start_ns for span in spans)


def _case_of(spans: Iterable[Span]) -> str:
    named = [span.first("seatrial.case") for span in spans]
    numbered = [span.first(genai.CONVERSATION_ID, "session.id") for span in spans]
    return next((str(name) for name in (*named, *numbered) if name is not None), "")


class RecordedSession:
    """The spans of one trial. They hold the whole trial, so its first turn brings everything."""

    blocking = False

    def __init__(self, file: SpanFile, trial: TrialEnvironment) -> None:
        self._file, self._trial, self._tree = file, trial, SpanTree(file.spans)
        trial.outcome = {}  # nothing worked on this trial's surroundings, so what they hold says nothing

    def invoke(self, turn: TurnInput) -> Answer:
        """The final output on record. Raises RuntimeError with what the spans say where the agent had failed."""
        recorder = self._trial.recorder
        if turn.number > 1:
            raise FixtureError("spans on file are one turn; a case with several cannot be graded from them")
        began = min((span.start_ns for span in self._file.spans), default=0)
        gaps = self._tree.gaps
        play(self._file.spans, recorder, began, whole=True)
        note_evidence(self._tree, recorder, gaps)
        self._trial.replayed_elsewhere = self._tree.replayed
        failed = next((span.error for span in self._top() if span.error is not None), None)
        if failed is not None:
            raise RuntimeError(failed)
        output = self._output() if gaps is None else None
        if output is None:
            recorder.lacks(Observable.OUTPUT, gaps or "the spans hold no final output")
        else:
            recorder.observe(Observable.OUTPUT)
        return Answer(output, latency_ms=self._lasted())

    def _top(self) -> list[Span]:
        """The top spans, and the agents that no agent is above: a service's own span may not say their errors."""
        agents = self._tree.of(Role.AGENT)
        inner = {span.span_id for span in agents if any(role_of(up) is Role.AGENT for up in self._tree.above(span))}
        return [*self._tree.tops, *(span for span in agents if span.span_id not in inner)]

    def _lasted(self) -> float | None:
        ends = [span.end_ns for span in self._file.spans if span.end_ns is not None]
        return (max(ends) - _began(self._file.spans)) / 1_000_000 if ends else None

    def _output(self) -> Any:
        """As the file says it, as its root does, or what a model said last."""
        if self._file.final_output is not None:
            return self._file.final_output
        return next((said for said in self._said() if said not in (None, "")), None)

    def _said(self) -> Iterator[Any]:
        for root in self._tree.tops:
            yield said_by(root)
            yield parsed(root.first("final_result", "output.value", "traceloop.entity.output"))
        models = self._tree.of(Role.MODEL)
        yield said_by(models[-1]) if models else None

    def close(self) -> None:
        """Nothing is held."""
