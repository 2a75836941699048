"""A process a trial: the same records as in this process, by either way of starting one; and an end to all of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, write_project
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason
from seatrial.errors import UsageError
from seatrial.harness.plan import plan
from seatrial.harness.request import Request
from seatrial.harness.worker import setup_for
from seatrial.runner.executors.process import ProcessExecutor
from seatrial.runner.processes import Launcher
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]

AGENT = """
import os
from seatrial import ModelCall, ToolCall, current_trial

CALLS = []


def agent(task):
    trial = current_trial()
    trial.database.execute("UPDATE orders SET status = 'refunded' WHERE id = 'O-1'")
    trial.record(ModelCall(model="small", input=10, output=5))
    trial.record(ToolCall("refund", {"order_id": "O-1"}, result={"ok": True}))
    CALLS.append(task)
    (trial.workdir / "note.txt").write_text("seen")
    return f"done with {task}, call {len(CALLS)}" if "count" in task else f"done with {task}"


def dies(task):
    CALLS.append(task)
    agent(task)
    os._exit(9)


def slow_to_die(task):
    from pathlib import Path
    (Path(__file__).parent / task).write_text(str(os.getpid()))
    import time
    time.sleep(60)
"""
FILES = {
    "seatrial.yaml": "version: 1\nagent: my_agent:agent\nprices: {small: {input: 1, output: 2}}\n",
    "my_agent.py": AGENT,
    "fixtures/shop/fixture.yaml": """
        database: {sqlite: orders.sql}
        outcome: {status: {sql: "SELECT status FROM orders WHERE id = 'O-1'"}}
        """,
    "fixtures/shop/orders.sql": "CREATE TABLE orders(id, status); INSERT INTO orders VALUES ('O-1', 'paid');",
    "cases/all.yaml": """
        defaults:
          environment: {fixture: shop}
          expected: {outcome: {status: refunded}, required_tools: [refund], answer: done}
        cases:
        - {id: a, input: one}
        - {id: b, input: two, expected: {answer: nothing}}
        """,
}


def without_chance(value: Any) -> Any:
    """JSON data without what differs between two runs of the same."""
    if isinstance(value, list):
        return [without_chance(item) for item in value]
    if isinstance(value, dict):
        left = {
            "run_id",
            "started",
            "latency_ms",
            "at_ms",
            "duration_ms",
            "previous",
            "trace_at",
            "trace_size",
            "trace_digest",
            "times",
        }
        return {key: without_chance(item) for key, item in value.items() if key not in left}
    return value


def content(run: Any) -> list[Any]:
    records = sorted(run.trials, key=lambda record: (record.case_id, record.trial_index))
    traces = [run.trace(record) for record in records]
    return [
        *(without_chance(record.model_dump(mode="json")) for record in records),
        *(without_chance(trace.model_dump(mode="json")) | {"observes": sorted(trace.observes)} for trace in traces),
    ]


def run_by(launcher_forks: bool, project: Path, **options: Any) -> list[Any]:
    """The records of a run with processes that are forked, or fresh."""
    planned = plan(Request(project=project, isolation="process", **options))
    kept = []

    class Kept:
        def write(self, record: Any, trace: Any) -> Any:
            kept.append(record)
            return record

    launcher = Launcher("seatrial.harness.worker:bench", setup_for(planned, planned.request), fork=launcher_forks)
    try:
        settings = TrialSettings(prices=planned.project.prices, seed=planned.info.seed)
        executor = ProcessExecutor(planned.agent, settings, launcher, planned.scratch(), 2)
        executor.run(FixedTrials(planned.cases), Kept())
        assert list(planned.scratch().glob("trial-*")) == []
    finally:
        planned.scratch.remove()
    return kept


def test_records_traces_and_results_are_those_of_threads(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    thread, process = (api.run(tmp_path, trials=2, seed=5, isolation=way) for way in ("thread", "process"))
    assert content(thread) == content(process)
    assert [record.status for record in process.trials].count("passed") == 2
    assert {record.cost_usd for record in process.trials} == {0.00002}
    assert without_chance(thread.summary()) == without_chance(process.summary())
    assert json.loads((process.folder / "run.json").read_text())["options"]["isolation"] == "process"


@pytest.mark.parametrize("forks", [True, False])
def test_each_trial_has_a_process_of_its_own(tmp_path: Path, forks: bool) -> None:
    write_project(tmp_path, FILES | {"cases/all.yaml": "{id: a, input: count, environment: {fixture: shop}}"})
    records = run_by(forks, tmp_path, trials=3)
    assert [record.output for record in records] == ["done with count, call 1"] * 3


@pytest.mark.parametrize("forks", [True, False])
def test_a_process_that_dies_leaves_its_trace_and_no_folder(tmp_path: Path, forks: bool) -> None:
    write_project(tmp_path, FILES)
    (record,) = run_by(forks, tmp_path, agent="my_agent:dies", select=("a",))
    assert (record.stop_reason, record.detail) == (StopReason.AGENT_ERROR, "the agent's process exited with code 9")
    assert (record.tools, record.cost_usd, record.outcome) == ({"refund": 1}, 0.00002, None)
    assert [(grade.name, str(grade.verdict)) for grade in record.grades] == [
        ("outcome", "abstain"),
        ("required_tools", "pass"),
    ]


def test_a_project_that_leaves_threads_running_gets_fresh_processes(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    write_project(tmp_path, FILES | {"my_agent.py": thread + AGENT})
    assert [record.case_id for record in api.run(tmp_path, "a", isolation="process").trials] == ["a"]


def test_retries_name_a_process_that_ended(tmp_path: Path) -> None:
    retries = "retries: {attempts: 2, on: [ProcessEnded]}"
    write_project(
        tmp_path, FILES | {"cases/all.yaml": f"{{id: a, input: x, {retries}, environment: {{fixture: shop}}}}"}
    )
    run = api.run(tmp_path, agent="my_agent:dies", isolation="process")
    assert [record.attempt for record in run.trials] == [1, 2]


@pytest.mark.parametrize("where", ["fixture", "grader"])
def test_a_process_that_dies_outside_the_agent_says_nothing_about_it(tmp_path: Path, where: str) -> None:
    write_project(
        tmp_path,
        {
            "seatrial.yaml": "version: 1\nagent: my_agent:agent\nisolation: process\n",
            "my_agent.py": "import os\n\ndef agent(task):\n    return task\n\ndef grade(context):\n    os._exit(4)\n",
            "fixtures/bad.py": "import os\n\ndef bad(environment):\n    os._exit(4)\n    yield\n",
            "cases/a.yaml": "{id: a, input: x, "
            + ("environment: {fixture: bad}}" if where == "fixture" else "graders: [my_agent:grade]}"),
        },
    )
    (record,) = api.run(tmp_path).trials
    assert record.status == "invalid"
    assert record.invalid_reason is {"fixture": InvalidReason.FIXTURE, "grader": InvalidReason.HARNESS}[where]
    place = "before the agent" if where == "fixture" else "after the agent had ended"
    assert record.detail == f"the trial's process exited with code 4 {place}"


def test_an_agent_object_cannot_be_sent(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    with pytest.raises(UsageError, match="give it as module:object, not as a function"):
        api.run(tmp_path, agent=lambda task: task, isolation="process")
    assert not (tmp_path / "runs").exists()


def test_an_unknown_isolation_is_refused(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    with pytest.raises(UsageError, match="isolation should be thread or process, not 'fork'"):
        api.run(tmp_path, isolation="fork")


def test_debugging_stays_in_this_process(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    assert plan(Request(project=tmp_path, isolation="process", debug=True)).isolation == "thread"


def test_a_project_that_cannot_be_loaded_there_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    once = 'import os\nif "LOADED" in os.environ:\n    raise RuntimeError("only once")\nos.environ["LOADED"] = "1"\n'
    write_project(tmp_path, FILES | {"my_agent.py": once + AGENT})
    try:
        with pytest.raises(UsageError, match=r"cannot be loaded in a process of its own: agent .*only once"):
            api.run(tmp_path, isolation="process")
    finally:
        os.environ.pop("LOADED", None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_trial_outlives_the_run_however_it_ends(tmp_path: Path, number: int) -> None:
    cases = {f"cases/{name}.yaml": case(name, message=f"pid-{name}") for name in ("a", "b")}
    write_project(tmp_path, FILES | {"cases/all.yaml": case("c", message="pid-c")} | cases)
    command = [sys.executable, "-m", "seatrial", "run", "--isolation", "process", "--agent", "my_agent:slow_to_die"]
    running = subprocess.Popen(
        [*command, "--output", "out"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    pids = [tmp_path / f"pid-{name}" for name in ("a", "b", "c")]
    while not all(path.exists() and path.read_text() for path in pids):
        assert running.poll() is None
    running.send_signal(number)
    code = running.wait(timeout=30)
    assert code == (130 if number == signal.SIGINT else -number)
    while any(_runs(int(path.read_text())) for path in pids):  # the test's own time limit ends this
        pass
    assert api.load(tmp_path / "out").trials == ()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
