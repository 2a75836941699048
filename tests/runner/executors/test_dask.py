"""Trials on a Dask cluster: the same records as here, each trial once, whatever becomes of its worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import seatrial, write_project
from seatrial.errors import UsageError

pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]

AGENT = """
import os
import time
from pathlib import Path

from seatrial import ToolCall, current_trial

STARTED = Path(__file__).parent / "started"


def agent(task):
    trial = current_trial()
    print("printed", task)
    trial.database.execute("UPDATE orders SET status = 'refunded'")
    trial.record(ToolCall("refund", {"order_id": "O-1"}))
    return f"done with {task}"


def slow(task):
    STARTED.mkdir(exist_ok=True)
    (STARTED / f"{trial_name()}-{time.time_ns()}-{os.getpid()}").touch()
    until = STARTED.parent / "go-on"
    while not until.exists():
        time.sleep(0.01)
    return agent(task)


def trial_name():
    return f"{current_trial().case.id}.{current_trial().trial_index}"


async def blocks(task):
    current_trial().record(ToolCall("look"))
    time.sleep(30)


def exits(task):
    current_trial().record(ToolCall("look"))
    os._exit(3)
"""
FILES = {
    "seatrial.yaml": "version: 1\nagent: my_agent:agent\n",
    "my_agent.py": AGENT,
    "fixtures/shop/fixture.yaml": 'database: {sqlite: o.sql}\noutcome: {status: {sql: "SELECT status FROM orders"}}\n',
    "fixtures/shop/o.sql": "CREATE TABLE orders(id, status); INSERT INTO orders VALUES ('O-1', 'paid');",
    "cases/all.yaml": """
        defaults:
          environment: {fixture: shop}
          expected: {outcome: {status: refunded}, required_tools: [refund], answer: done}
        cases:
        - {id: a, input: one}
        - {id: b, input: two}
        - {id: wrong, input: three, expected: {answer: nothing}}
        """,
}
LOOPBACK = ("--dashboard-address", "127.0.0.1:0", "--no-dashboard")


class Cluster:
    """A scheduler and two workers, each a process of its own on loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        scheduler = ("--host", "tcp://127.0.0.1", "--port", "0", "--no-show", "--scheduler-file", str(self._file))
        self.processes = [self._start("scheduler", *scheduler, *LOOPBACK)]
        while not self._file.exists():
            assert self.processes[0].poll() is None
        worker = ("--scheduler-file", str(self._file), "--host", "127.0.0.1", "--nthreads", "4", "--no-nanny")
        self.workers = [
            self._start("worker", *worker, "--name", f"node{n}", "--local-directory", str(folder / f"w{n}"), *LOOPBACK)
            for n in range(2)
        ]

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], cwd=self._folder, stdout=log, stderr=log, env=os.environ
            )

    @property
    def address(self) -> str:
        return str(json.loads(self._file.read_text())["address"])

    def end(self) -> None:
        for process in (*self.workers, *self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that no test harms."""
    running = Cluster(tmp_path_factory.mktemp("shared"))
    yield running
    running.end()


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.end()


def without_chance(value: Any) -> Any:
    if isinstance(value, list):
        return [without_chance(item) for item in value]
    if isinstance(value, dict):
        left = {"run_id", "started", "latency_ms", "at_ms", "duration_ms"}
        left |= {"previous", "trace_at", "trace_size", "trace_digest"}
        return {key: without_chance(item) for key, item in value.items() if key not in left}
    return value


def content(folder: Path) -> Any:
    run = api.load(folder)
    records = sorted(run.trials, key=lambda record: (record.case_id, record.trial_index))
    traces = [run.trace(record) for record in records]
    return without_chance(
        [record.model_dump(mode="json") for record in records]
        + [trace.model_dump(mode="json") | {"observes": sorted(trace.observes)} for trace in traces]
    )


def test_two_workers_give_the_records_of_this_machine_in_threads_and_processes(tmp_path: Path, shared: Cluster) -> None:
    write_project(tmp_path, FILES)
    run = ("run", "-q", "--seed", "3", "--trials", "2")
    there = ("--executor", "dask", "--scheduler", shared.address)
    assert seatrial(*run, "--output", "here", cwd=tmp_path).returncode == 1
    assert (done := seatrial(*run, *there, "--output", "there", cwd=tmp_path)).returncode == 1, done.stderr
    process = (*there, "--isolation", "process", "--output", "process")
    assert (done := seatrial(*run, *process, cwd=tmp_path)).returncode == 1, done.stderr
    here = content(tmp_path / "here")
    assert len(here) == 12
    assert content(tmp_path / "there") == here
    assert content(tmp_path / "process") == here


def test_a_worker_that_is_ended_mid_run_leaves_complete_and_single_results(tmp_path: Path, cluster: Cluster) -> None:
    write_project(tmp_path, FILES)
    there = ("--agent", "my_agent:slow", "--executor", "dask", "--scheduler", cluster.address)
    command = [sys.executable, "-m", "seatrial", "run", *there, "--trials", "4", "--concurrency", "8"]
    running = subprocess.Popen([*command, "--output", "out"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    started = tmp_path / "started"
    doomed = cluster.workers[0]
    while not (
        started.exists() and len(list(started.glob(f"*-{doomed.pid}"))) >= 2 and len(list(started.iterdir())) > 6
    ):
        assert running.poll() is None
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.wait()
    (tmp_path / "go-on").touch()
    _, errors = running.communicate(timeout=100)
    assert running.returncode == 1, errors
    run = api.load(tmp_path / "out")
    counts = Counter(str(record.key) for record in run.trials)
    assert counts == {f"{name}#{n}": 1 for name in ("a", "b", "wrong") for n in range(1, 5)}
    assert Counter(str(record.status) for record in run.trials) == {"passed": 8, "failed": 4}
    starts = Counter(path.name.partition("-")[0] for path in started.iterdir())
    assert max(starts.values()) > 1


def test_limits_hold_on_workers(tmp_path: Path, shared: Cluster) -> None:
    write_project(tmp_path, FILES)
    there = ("--timeout", "1", "--executor", "dask", "--scheduler", shared.address)
    for name, isolation, stop in (
        ("blocks", "thread", "timeout"),
        ("blocks", "process", "timeout"),
        ("exits", "process", "agent_error"),
    ):
        options = ("--agent", f"my_agent:{name}", "--isolation", isolation, "--output", f"{name}-{isolation}")
        seatrial("run", "-q", "a", *there, *options, cwd=tmp_path)
        (record,) = api.load(tmp_path / f"{name}-{isolation}").trials
        assert (record.stop_reason, record.tools) == (stop, {"look": 1})


def test_a_project_that_cannot_be_loaded_on_the_worker_ends_the_run(tmp_path: Path, shared: Cluster) -> None:
    module = "import sys\nif sys.argv[1] == 'worker':\n    raise RuntimeError('not here')\n"
    write_project(tmp_path, FILES | {"my_agent.py": module + AGENT})
    done = seatrial("run", "a", "--executor", "dask", "--scheduler", shared.address, cwd=tmp_path)
    assert done.returncode == 2
    assert "on worker" in done.stderr
    assert "not here" in done.stderr


def test_a_cluster_on_this_machine_listens_on_loopback_only(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    there = ("--agent", "my_agent:slow", "--executor", "dask", "--concurrency", "2", "--output", "out")
    command = [sys.executable, "-m", "seatrial", "run", "a", *there]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True, text=True)
    drained = threading.Thread(target=running.communicate)
    drained.start()
    while not (tmp_path / "started").exists():
        assert running.poll() is None
    listening = addresses_of_session(running.pid)
    (tmp_path / "go-on").touch()
    drained.join(100)
    assert running.returncode == 0
    assert len(listening) >= 3
    assert {address.partition(":")[0] for address in listening} == {"0100007F"}


def addresses_of_session(session: int) -> set[str]:
    """Local addresses, in hexadecimal, on which processes of a session listen."""
    sockets = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                sockets |= {str(item.readlink()) for item in (process / "fd").iterdir()}
        except OSError:
            continue
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_rates_that_the_scheduler_cannot_keep_are_refused_before_anything_runs(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    without = "import sys; sys.modules['seatrial'] = None; from distributed.cli.dask_scheduler import main; main()"
    place = tmp_path / "scheduler.json"
    options = ("--host", "tcp://127.0.0.1", "--port", "0", "--no-show", "--scheduler-file", str(place), *LOOPBACK)
    scheduler = subprocess.Popen([sys.executable, "-c", without, *options], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        while not (place.exists() and place.read_text().endswith("}")):  # it is written piece by piece
            assert scheduler.poll() is None
        there = ("--executor", "dask", "--scheduler", json.loads(place.read_text())["address"])
        rates = ("--set", "rates.models.m.requests_per_minute=60")
        done = seatrial("run", *there, *rates, cwd=tmp_path)
    finally:
        scheduler.kill()
        scheduler.wait()
    assert done.returncode == 2
    assert "rate limits on a cluster are kept by its scheduler" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_what_cannot_be_is_said_before_anything_runs(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    with pytest.raises(UsageError, match="unknown executor 'desk'; did you mean 'dask'"):
        api.run(tmp_path, executor="desk")
    with pytest.raises(UsageError, match="add --executor dask"):
        api.run(tmp_path, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="give it as module:object"):
        api.run(tmp_path, agent=str.upper, executor="dask")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("address", ["rubbish", "nonsense://x", "tcp://127.0.0.1:x", "tls://127.0.0.1:1"])
def test_an_address_that_is_none_is_one_line_and_leaves_no_client_behind(tmp_path: Path, address: str) -> None:
    write_project(tmp_path, FILES)
    done = seatrial("run", "--executor", "dask", "--scheduler", address, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"seatrial: there is no Dask scheduler at {address}: ")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (tmp_path / "runs").exists()
