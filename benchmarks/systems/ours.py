"""Seatrial, through the doors its own command uses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.task import CALLS, Ready, Task, act, act_blocking, calls, lines_in, question
from seatrial.core.agent_run import ToolCall
from seatrial.core.case import Case
from seatrial.core.project import Project
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Message, Observable, StopReason, ToolCallEvent, Trace
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.environment.secrets import Redactor
from seatrial.environment.trial import current_trial
from seatrial.harness.comparing import Compared, comparison_json, side_at
from seatrial.harness.plan import Plan, plan
from seatrial.harness.regrading import execute_regrade, plan_regrade
from seatrial.harness.request import Request
from seatrial.harness.runs import Run, execute
from seatrial.harness.runs import load as load_run
from seatrial.loading.cases import load_cases
from seatrial.runner.grading import Grading
from seatrial.store.rundir import RunWriter
from seatrial.verdict.comparison import compare as compare_sides

__all__ = ["compare", "journal", "kept", "load", "load_many", "regrade", "resume", "trials"]


def trials(task: Task, folder: Path) -> Ready:
    """A whole run: trials, grades, journal, summary, verdict. Planning (reading cases) comes before."""
    planned = plan(_request(task, folder))
    return Ready(lambda: _passed(execute(planned)), lambda _: lines_in(folder / "kept" / "trials.jsonl"))


def _passed(run: Run) -> Run:
    if run.exit_code != 0:
        raise RuntimeError(f"the run ended with exit code {run.exit_code}")
    return run


def _request(task: Task, folder: Path, expected: dict[str, Any] | None = None) -> Request:
    return Request(
        project=_project(folder / "project", task.cases, expected),
        agent=_agent(task),
        trials=task.trials_each,
        concurrency=task.concurrency,
        output=folder / "kept",
    )


def _project(folder: Path, cases: int, expected: dict[str, Any] | None = None) -> Path:
    """A project whose cases are passed by the answer that is the question."""
    if folder.exists():
        return folder
    (folder / "cases").mkdir(parents=True)
    lines = [
        {"id": f"c{n}", "input": question(n), "expected": expected or {"response": {"equals": question(n)}}}
        for n in range(cases)
    ]
    (folder / "cases" / "all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "seatrial.yaml").write_text("version: 1\nagent: operator:not_\n")
    return folder


def _agent(task: Task) -> Callable[..., Any]:
    async def plain(asked: str) -> str:
        await act(task)
        return asked

    async def calling(asked: str) -> str:
        trial = current_trial()
        for number, text in calls(asked):
            trial.record(ToolCall("look", {"n": number}, result=text))
        return asked

    def blocking(asked: str) -> str:
        act_blocking(task)
        return asked

    return {"calls": calling, "tools": _with_tools, "blocking": blocking}.get(task.agent, plain)


def _with_tools(environment: Any) -> Callable[[str], Any]:
    texts: dict[int, str] = {}

    def look(n: int) -> str:
        return texts[n]

    look = environment.tool(look)

    async def answer(asked: str) -> str:
        texts.update(calls(asked))
        for number in range(CALLS):
            look(n=number)
        return asked

    return answer


def kept(task: Task, folder: Path) -> Ready:
    """How many trials a run that was killed left, as the product reads them."""
    return Ready(lambda: load_run(folder / "kept"), lambda run: len(run.trials))


def resume(task: Task, folder: Path) -> Ready:
    """Going on with a run whose last trial is missing, from the request to the last file."""
    request = _request(task, folder)
    execute(plan(request))
    records, info = folder / "kept" / "trials.jsonl", folder / "kept" / "run.json"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:-1]))
    info.write_text(json.dumps(json.loads(info.read_bytes()) | {"status": "running", "ended": None, "chain_end": None}))
    return Ready(lambda: _passed(execute(plan(replace(request, resume=True)))), lambda _: lines_in(records))


def journal(task: Task, folder: Path) -> Ready:
    """Trials kept: masked, linked, two lines each, and on the disk in the end."""
    trace = Trace(events=(Message(number=1, role="user", content="x"),), output="x", outputs=("x",))
    record = TrialRecord(case_id="c", status=TrialStatus.PASSED, stop_reason=StopReason.ANSWERED, output="x")
    masks = Redactor({"API_KEY": "sk-000000000000"})
    writer = RunWriter.create(folder / "kept", RunInfo(run_id="r"), [Case(id="c")], masks)

    def run() -> None:
        for number in range(task.trials):
            writer.write(record.model_copy(update={"trial_index": number + 1}), trace)
        writer.commit()

    def count(_: object) -> int:
        writer.finish(writer.info)
        return lines_in(folder / "kept" / "trials.jsonl")

    return Ready(run, count)


_EXPECTED = {"answer": "done", "required_tools": [{"name": "look", "arguments": {"n": 1}}], "max_steps": 5}


def regrade(task: Task, folder: Path) -> Ready:
    """Stored trials of two tool calls each graded again, from disk to disk, with the summary over all of them."""
    planned = plan(_request(task, folder, _EXPECTED))
    _write_run(planned, folder / "stored", _looked(), wrong=0)
    again = plan_regrade(folder / "stored", project=folder / "project", output=folder / "kept")
    return Ready(lambda: _passed(execute_regrade(again).run), lambda _: lines_in(folder / "kept" / "trials.jsonl"))


def _looked() -> Trace:
    calls = [ToolCallEvent(number=n, name="look", arguments={"n": 1}, result="x" * 50, ended=n + 1) for n in (2, 3)]
    return Trace(
        events=(Message(number=1, role="user", content="go"), *calls),
        observes=frozenset(Observable),
        output="it is done",
        outputs=("it is done",),
        steps=2,
        steps_are_tool_calls=True,
    )


def _write_run(planned: Plan, folder: Path, trace: Trace, *, wrong: int) -> None:
    """A finished run of such traces, written without an agent; the last trial of every `wrong`th case failed."""
    writer = RunWriter.create(folder, planned.info, [item.case for item in planned.cases])
    for at, item in enumerate(planned.cases):
        for index in range(item.trials):
            failed = wrong and at % wrong == 0 and index == item.trials - 1
            record = TrialRecord(
                case_id=item.case.id,
                suite=item.case.suite,
                trial_index=index + 1,
                case_digest=item.digest,
                stop_reason=StopReason.ANSWERED,
                output=trace.output,
                latency_ms=1.0 + at % 7,
                steps=trace.steps,
                **Grading().verdict(StopReason.ANSWERED, None),
            )
            changed = {"status": TrialStatus.FAILED} if failed else {}
            writer.write(record.model_copy(update=changed), trace)
    writer.finish(planned.info.model_copy(update={"status": RunStatus.FINISHED}))


def compare(task: Task, folder: Path) -> Ready:
    """Two loaded runs compared, with all that `seatrial compare --json` says; every tenth case broke."""
    planned = plan(_request(task, folder))
    for name, wrong in (("before", 0), ("after", 10)):
        _write_run(planned, folder / name, _looked(), wrong=wrong)
    before, after = side_at(folder / "before"), side_at(folder / "after")

    def run() -> dict[str, Any]:
        return comparison_json(Compared(compare_sides(before, after)))

    return Ready(run, lambda document: len(document["cases"]))


def load(task: Task, folder: Path, files: int = 1) -> Ready:
    """Cases of five keys read and checked, from one YAML file."""
    suite = folder / "cases" / "smoke"
    suite.mkdir(parents=True)
    for file in range(files):
        text = "".join(_five_keys(number) for number in range(file, task.cases, files))
        (suite / f"{file}.yaml").write_text(text, encoding="utf-8")
    project = Project(root=str(folder), defaults={"trials": 3, "limits": {"steps": 20}})
    return Ready(lambda: load_cases(project), lambda loaded: len(loaded.cases))


def load_many(task: Task, folder: Path) -> Ready:
    """The same cases, each in a file of its own."""
    return load(task, folder, files=task.cases)


def _five_keys(number: int) -> str:
    return (
        f"- id: case_{number}\n"
        f"  query: What is {number} plus {number}?\n"
        f'  expected_answer: "{2 * number}"\n'
        "  tags: [math, easy]\n"
        "  max_steps: 5\n"
    )
