"""What grading stored trials again costs: seconds, and the peak memory of a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CASES = 1_000
"""Cases that the stored trials are spread over."""


def stored_run(folder: Path, trials: int) -> Path:
    """A project with a finished run of that many trials, each with two tool calls, written without running an agent."""
    from seatrial.core.run import RunStatus
    from seatrial.core.trace import Message, Observable, StopReason, ToolCallEvent, Trace
    from seatrial.core.trial import TrialRecord
    from seatrial.harness.plan import Request, plan
    from seatrial.runner.grading import Grading
    from seatrial.store.rundir import RunWriter

    expected = {"answer": "done", "required_tools": [{"name": "look", "arguments": {"n": 1}}], "max_steps": 5}
    cases = min(CASES, trials)
    lines = [json.dumps({"id": f"c{n}", "input": "go", "expected": expected}) for n in range(cases)]
    (folder / "cases").mkdir(parents=True)
    (folder / "cases" / "all.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "seatrial.yaml").write_text("version: 1\nagent: operator:not_\n")
    planned = plan(Request(project=folder, trials=-(-trials // cases)))
    writer = RunWriter.create(folder / "run", planned.info, [item.case for item in planned.cases])
    calls = [ToolCallEvent(number=n, name="look", arguments={"n": 1}, result="x" * 50, ended=n + 1) for n in (2, 3)]
    trace = Trace(
        events=(Message(number=1, role="user", content="go"), *calls),
        observes=frozenset(Observable),
        output="it is done",
        outputs=("it is done",),
        steps=2,
        steps_are_tool_calls=True,
    )
    facts = {"stop_reason": StopReason.ANSWERED, "output": "it is done", "latency_ms": 1.0, "steps": 2}
    for number in range(trials):
        item = planned.cases[number % cases]
        record = TrialRecord(
            case_id=item.case.id,
            suite=item.case.suite,
            trial_index=number // cases + 1,
            case_digest=item.digest,
            **facts,
            **Grading().verdict(StopReason.ANSWERED, None),
        )
        writer.write(record, trace)
    writer.finish(planned.info.model_copy(update={"status": RunStatus.FINISHED}))
    return folder / "run"


@dataclass(frozen=True)
class Cost:
    """What grading stored trials again took, in a process of its own."""

    seconds: float
    """All of it: trials from disk to disk, then the summary over all of them."""
    streaming_seconds: float
    """Until the last trial was graded and written."""
    streaming_mb: float
    """Peak memory until then."""
    mb: float
    """Peak memory in the end, when every record has been read back for the summary."""


def cost_of_regrading(trials: int) -> Cost:
    """Write a run of that many trials, and grade it again in a fresh process."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "project")
        folder.mkdir()
        stored_run(folder, trials)
        command = [sys.executable, __file__, str(folder)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Cost(*map(float, printed.split()))


def _measure(folder: str) -> None:
    from seatrial.harness.regrading import execute_regrade, plan_regrade

    planned = plan_regrade(Path(folder, "run"), project=Path(folder))
    began = time.perf_counter()
    streamed: list[float] = []

    def on_trial(_: object, done: int, total: int) -> None:
        if done == total:
            streamed.extend((time.perf_counter() - began, _peak_mb()))

    done = execute_regrade(planned, on_trial)
    took = time.perf_counter() - began
    assert done.run.exit_code == 0
    print(took, *streamed, _peak_mb())


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _measure(sys.argv[1])
    else:
        for count in (1_000, 10_000, 100_000):
            print(count, cost_of_regrading(count), flush=True)
