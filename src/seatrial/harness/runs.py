"""Running a plan, and reading back what was run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.core.case import Case
from seatrial.core.collecting import collector_paused
from seatrial.core.ledger import Ledger
from seatrial.core.ports import Execution
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.errors import Diagnostic, ExitCode, StorageError, UsageError, did_you_mean
from seatrial.harness.budgeting import budget_for_the_rest, course_of, trials_of
from seatrial.harness.cassettes import running
from seatrial.harness.executors import executor_for
from seatrial.harness.going_on import resume_command
from seatrial.harness.hidden import veiled_case, veiled_record, veiled_trace
from seatrial.harness.importing import importable
from seatrial.harness.misfits import refuse_misfit
from seatrial.harness.plan import Plan, plan
from seatrial.harness.request import Request
from seatrial.harness.run_info import sayable
from seatrial.harness.settings import settings_for
from seatrial.loading.project_folder import find_root
from seatrial.report.files import write_results
from seatrial.report.summary import summary_of, whole
from seatrial.runner.remaining import Remaining, earlier
from seatrial.store.atomic import write_text
from seatrial.store.reading import content, parsed
from seatrial.store.rundir import RunFolder, RunWriter, is_run_folder
from seatrial.verdict.metrics import CaseResult, case_results, exit_code

if TYPE_CHECKING:
    import pandas

__all__ = ["Run", "arun", "execute", "failed_ids", "find_run", "load", "remember", "run", "runs_of"]

OnTrial = Callable[[TrialRecord, int, int], None]
"""Called with each finished trial, how many have finished, and how many are planned."""


@dataclass(frozen=True)
class Run:
    """One run: all trials of one build on the selected cases."""

    folder: Path
    info: RunInfo
    definitions: tuple[Case, ...]
    """The selected cases as they were written."""
    trials: Ledger
    """Every finished attempt, in the order in which they finished: a sequence of records, read from the run folder as
    they are looked at."""
    warnings: tuple[Diagnostic, ...] = ()

    @cached_property
    def cases(self) -> tuple[CaseResult, ...]:
        """The verdict on every selected case, in file order."""
        return case_results(self.info, self.definitions, self.trials)

    @property
    def exit_code(self) -> int:
        """0 all passed, 1 a case of a gating suite failed, else 4 when one says nothing; 130 when interrupted.

        A run that was graded again does not count as interrupted: what it lacks, its source lacked.
        """
        if self.info.status is RunStatus.INTERRUPTED and not self.info.regraded_from:
            return int(ExitCode.INTERRUPTED)
        return int(exit_code(self.info, self.cases))

    @property
    def budget_for_the_rest(self) -> dict[str, float] | None:
        """For a run that ran out of budget: `max_cost` and `max_time`, as far as it had them, in which the rest should
        run. None for any other."""
        if self.info.status is not RunStatus.OUT_OF_BUDGET or self.info.regraded_from:
            return None
        return budget_for_the_rest(self.folder, self.info, self.trials)

    @property
    def resume_command(self) -> str | None:
        """How to go on with a run that ran out of budget, by the options on record; None for any other."""
        budget = self.budget_for_the_rest
        return None if budget is None else resume_command(self.folder, sayable(self.info.options), budget)

    def summary(self) -> dict[str, Any]:
        """What `results.json` holds."""
        return whole(self.results())

    def results(self) -> dict[str, Any]:
        """The same for reports: rows of cases and trials are made as they are looked at."""
        return summary_of(self.info, self.definitions, self.cases)

    def trace(self, record: TrialRecord) -> Trace:
        """The stored trace of one trial."""
        return RunFolder(self.folder).trace(record)

    def to_pandas(self) -> pandas.DataFrame:
        """A row a trial attempt: its figures and one column `grade.<name>` a grade with its score.

        Raises UsageError when pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise UsageError("to_pandas needs pandas; install it with: pip install 'seatrial[pandas]'") from error
        plain = ("case_id", "suite", "trial_index", "attempt", "status", "stop_reason", "detail", "steps")
        rows = [
            {name: getattr(record, name) for name in (*plain, "cost_usd", "latency_ms", "output")}
            | {f"grade.{grade.name}": grade.score for grade in record.grades}
            for record in self.trials
        ]
        return pandas.DataFrame(rows)


@dataclass
class _Collector:
    """A Sink that passes on to the run folder and tells of progress."""

    writer: RunWriter
    total: int
    on_trial: OnTrial | None = None
    hidden: frozenset[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        if trace.error is not None:
            refuse_misfit(trace.error)
        if record.case_id in self.hidden:
            record, trace = veiled_record(record), veiled_trace(trace)
        with self._lock:
            if self._closed:
                raise StorageError("the run has ended")
            kept = self.writer.write(record, trace)
        if self.on_trial is not None:
            self.on_trial(kept, len(self.writer.kept), self.total)
        return kept

    def close(self) -> None:
        """Take no more trials: those that an abandoned thread still brings come too late."""
        with self._lock:
            self._closed = True


@dataclass
class _Execution:
    """A plan being run."""

    start: Callable[[], Execution]
    running: Execution | None = None
    """Set once it has begun."""
    run: Run | None = None
    """Set once it has ended."""

    def begin(self) -> Future[None]:
        """Start the trials; gives what to wait for."""
        self.running = self.start()
        return self.running.done

    def stop(self) -> None:
        """Stop the trials in flight, if any began."""
        if self.running is not None:
            self.running.stop()


@contextmanager
def _executing(
    planned: Plan,
    on_trial: OnTrial | None = None,
    debugger: Callable[[BaseException], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[_Execution]:
    """A run from its first trial to its last file. The body begins it and waits for it.

    When the body is interrupted the trials in flight are stopped. However it ends, the folder is left readable. A
    KeyboardInterrupt is swallowed (the run says `interrupted`), anything else passes on; so does a second
    KeyboardInterrupt, which waits for nothing.
    """
    open_run = RunWriter.resume if planned.resumes else partial(RunWriter.create, resumable=planned.request.resume)
    recording = running(planned.cassettes, planned.info, planned.redactor)
    with importable(planned.project.root), _same_folder(), recording:
        executor = executor_for(planned, settings_for(planned, debugger, clock))
        definitions = _definitions(planned)
        writer = open_run(planned.folder, planned.info, definitions, planned.redactor)
        if not planned.info.rerun_of:
            remember(planned.folder, Path(planned.project.root))
        collector = _Collector(writer, planned.total, on_trial, planned.hidden)
        before = earlier(planned.cases, writer.kept)
        left = trials_of(planned.cases, planned.info, planned.only)
        if len(writer.kept):
            left = Remaining(left, before.finished)
        course = course_of(left, collector, planned.budget, planned.project, kept=writer.kept)
        execution = _Execution(lambda: executor.start(course.source, course.sink, before))
        status = RunStatus.INTERRUPTED
        try:
            yield execution
            status = course.status
        except KeyboardInterrupt:
            execution.stop()
        except asyncio.CancelledError:
            execution.stop()
            raise
        finally:
            first = sys.exception()
            try:
                execution.run = _end(planned, definitions, collector, status)
            except StorageError:  # a full disk takes the summary too: the trial that found no room is the one to name
                if first is None:
                    raise
    course.check(planned.folder)


@contextmanager
def _same_folder() -> Iterator[None]:
    """An agent that changes the working folder changes it for its own run at most."""
    here = Path.cwd()
    try:
        yield
    finally:
        os.chdir(here)


def _end(planned: Plan, definitions: tuple[Case, ...], collector: _Collector, status: RunStatus) -> Run:
    """Write what a finished or interrupted run leaves behind; `run.json`, which says that it has ended, comes last."""
    collector.close()
    writer, records = collector.writer, collector.writer.kept
    ended = planned.info.altered({"status": status, "ended": _now(), "models": records.models})
    run = Run(planned.folder, writer.final(ended), definitions, records, planned.warnings)
    try:
        committed = _beside(writer.commit)  # the disk has its own time
        try:
            with collector_paused():
                write_results(planned.folder, run.results(), once=committed.result)
        finally:
            wait((committed,))
        writer.finish(run.info)
        return run
    finally:
        writer.close()
        planned.scratch.remove()


def _beside(work: Callable[[], None]) -> Future[None]:
    """The work in a thread, which may begin when the main thread has ended: an executor would refuse that."""
    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  handed to whoever asks
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="seatrial-commit").start()
    return done


def _definitions(planned: Plan) -> tuple[Case, ...]:
    cases = tuple([item.case for item in planned.cases])
    return (
        tuple([veiled_case(case) if case.id in planned.hidden else case for case in cases]) if planned.hidden else cases
    )


def remember(folder: Path, root: Path) -> None:
    """Let `latest` find a run that was written outside `runs/`."""
    if folder.resolve().parent != (root / "runs").resolve():
        with contextlib.suppress(StorageError):
            write_text(root / ".seatrial" / "last-run", f"{folder.resolve()}\n")


def execute(
    planned: Plan,
    on_trial: OnTrial | None = None,
    debugger: Callable[[BaseException], None] | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Run:
    """Run a plan and wait for it, whatever loop may be running in this thread.

    KeyboardInterrupt stops the trials in flight; the run given back has status interrupted. What else goes wrong
    (a disk that is full, say) is raised after the folder was closed. A run that is complete is only read. `clock` is
    what looks at the surroundings of trials are spaced by.
    """
    if planned.complete:
        return _complete(planned)
    with _executing(planned, on_trial, debugger, clock) as execution:
        execution.begin().result()
    return _ended(execution)


def _complete(planned: Plan) -> Run:
    """The run that had finished before."""
    if planned.cassettes is not None:
        planned.cassettes.close()
    return replace(load(planned.folder), warnings=planned.warnings)


def _ended(execution: _Execution) -> Run:
    if execution.run is None:
        raise RuntimeError("a run was read before it ended")
    return execution.run


def run(project: str | Path = ".", select: Sequence[str] | str = (), **options: Any) -> Run:
    """Run the agent on the selected cases and keep everything in a run folder.

    `options` are those of the command line, with underscores: agent (a spec, or the agent itself), build, trials,
    concurrency, suite, tag, risk, keyword, output, resume, seed, tools, isolation, executor, scheduler, timeout_s, set,
    debug, max_cost, max_time, allow_unknown_cost, stop_when_decided, cassettes, cassette_mode. Works inside a running
    loop (it blocks the caller); `arun` is the awaitable door. Raises UsageError, InputError, NothingSelected,
    StorageError.
    """
    return execute(plan(_request(project, select, options)))


async def arun(project: str | Path = ".", select: Sequence[str] | str = (), **options: Any) -> Run:
    """As `run`, without blocking the caller's loop. Cancelling it stops the trials in flight."""
    planned = plan(_request(project, select, options))
    if planned.complete:
        return _complete(planned)
    with _executing(planned) as execution:
        await asyncio.shield(asyncio.wrap_future(execution.begin()))
    return _ended(execution)


def _request(project: str | Path, select: Sequence[str] | str, options: dict[str, Any]) -> Request:
    known = set(Request.__dataclass_fields__) - {"project", "select", "command"}
    for name in options:
        if name not in known:
            hint = did_you_mean(name, sorted(known))
            raise UsageError(f"run() has no option {name!r}" + (f"; {hint}" if hint else ""))
    changes = {name: _READ.get(name, lambda value: value)(value) for name, value in options.items()}
    return Request(project=_place(project), select=_several(select), command=("seatrial.run",), **changes)


def _several(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) else value


def _place(value: Any) -> Any:
    return Path(value) if isinstance(value, (str, os.PathLike)) else value


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("suite", "tag", "risk", "set"), _several),
    **dict.fromkeys(("output", "cassettes"), _place),
}
"""Options that may be given more simply than a Request holds them."""


def load(folder: str | Path) -> Run:
    """A run that was written, finished or not. Raises UsageError or StorageError naming the file."""
    stored = RunFolder(Path(folder))
    return Run(stored.folder, stored.info, stored.cases(), stored.records())


def find_run(name: str, project: Path | None = None) -> Path:
    """The folder of a run: a path, the id of a run of the project, or `latest`.

    `project` is the project's folder, None = found upward from here; a path needs none. Raises UsageError with the
    nearest id when there is no such run.
    """
    if is_run_folder(Path(name)):
        return Path(name)
    try:
        root = find_root(project)
    except UsageError as error:
        raise UsageError(f"{name}: there is no such run folder, and no project here to look for a run in") from error
    found = {folder.name: folder for folder in _run_folders(root)}
    if name == "latest":
        newest = max(found.values(), key=_started, default=None)
        if newest is None:
            raise UsageError(f"there is no run yet in {root / 'runs'}")
        return newest
    if name in found:
        return found[name]
    hint = did_you_mean(name, list(found))
    raise UsageError(f"there is no run {name!r}" + (f"; {hint}" if hint else ""))


def _run_folders(root: Path) -> list[Path]:
    """Every run of the project: those in `runs/`, and the last one written elsewhere."""
    folders = [path.parent for path in (root / "runs").glob("*/run.json") if path.is_file()]
    with contextlib.suppress(OSError, StorageError):
        elsewhere = Path((root / ".seatrial" / "last-run").read_text(encoding="utf-8").strip())
        if is_run_folder(elsewhere):
            folders.append(elsewhere)
    return folders


def runs_of(root: Path) -> list[RunInfo]:
    """What every readable run of the project says of itself, newest first."""
    found = []
    for folder in _run_folders(root):
        with contextlib.suppress(StorageError):
            found.append(RunFolder(folder).info)
    return sorted(found, key=lambda info: (info.started, info.run_id), reverse=True)


def _started(folder: Path) -> str:
    try:
        data = parsed(content(folder / "run.json"))
    except (StorageError, ValueError):
        return ""
    return str(data.get("started", "")) if isinstance(data, dict) else ""


def failed_ids(run: Run) -> frozenset[str]:
    """The cases that did not pass."""
    return frozenset(case.case_id for case in run.cases if case.verdict != "passed")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
