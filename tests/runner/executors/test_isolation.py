"""Agent -> status, stop reason, message: what becomes of agents that do what agents should not, by isolation.

One run an isolation, with the real command; the tables below were written by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import seatrial as api
from hostile import AGENTS
from projects import seatrial, write_project
from seatrial.harness.runs import Run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


class End(NamedTuple):
    """How a trial ends."""

    status: str
    stop_reason: str
    detail: str
    """How its one-line reason begins."""


DONE = End("passed", "answered", "")
LIMIT = "timeout: the limit of 1 s was reached"

EITHER = {
    "sleeps": End("failed", "timeout", LIMIT),
    "fills_its_folder": DONE,
    "leaves_threads as daemons": DONE,
    "prints_50_mb": DONE,
    "raises_in_a_callback": DONE,
    "raises_base_exception": End("failed", "agent_error", "raised BaseException: no Exception"),
    "raises_system_exit": End("failed", "agent_error", "raised SystemExit: 3"),
    "exits_in_a_callback": DONE,
    "never_answers_an_approval": End("failed", "waiting_approval", "waiting_approval: an approval stayed unanswered"),
}
THREAD = EITHER | {
    "sleeps_in_the_loop": End("failed", "timeout", f"{LIMIT} while the agent blocked the event loop"),
    "sleeps_in_c": End("failed", "timeout", f"{LIMIT} while the agent blocked the event loop"),
    "ignores_being_cancelled": End("failed", "timeout", f"{LIMIT} and the agent went on when it was told to stop"),
    "forks": DONE,
    "changes_cwd_and_environment": DONE,
}
ENDED = f"{LIMIT} and its process was ended"
PROCESS = EITHER | {
    "sleeps_in_the_loop": End("failed", "timeout", ENDED),
    "sleeps_in_c": End("failed", "timeout", ENDED),
    "sleeps_in_c_with_the_lock": End("failed", "timeout", ENDED),
    "ignores_being_cancelled": End("failed", "timeout", ENDED),
    "exits": End("failed", "agent_error", "the agent's process exited with code 7"),
    "exits_with_0": End("failed", "agent_error", "the agent's process exited with code 0"),
    "segfaults": End("failed", "agent_error", "the agent's process was ended by signal SIGSEGV"),
    "is_killed": End("failed", "agent_error", "the agent's process was ended by signal SIGKILL"),
    "dies_with_a_full_folder": End("failed", "agent_error", "the agent's process exited with code 7"),
    "finds_the_disk_full": End("failed", "agent_error", "raised OSError: [Errno 27] File too large"),
    "leaves_threads": DONE,
    "changes_cwd_and_environment": DONE,
    "sees_what_others_changed": DONE,
    "prints_50_mb_from_a_program": DONE,
    "forks": DONE,
    "forks_many_and_waits": End("failed", "timeout", LIMIT),
    "leaves_programs": DONE,
}
TABLES = {"thread": THREAD, "process": PROCESS}


class Finished(NamedTuple):
    run: Run
    project: Path
    printed: str


@pytest.fixture(scope="module", params=["thread", "process"])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The table's agents, run with one isolation."""
    project, temporary = tmp_path_factory.mktemp(request.param), tmp_path_factory.mktemp("temporary")
    cases = [
        {"id": name.replace(" ", "."), "input": {"message": name}, "expected": {"answer": "done"}}
        for name in TABLES[request.param]
    ]
    for one in cases:
        if one["id"] == "never_answers_an_approval":
            one["expected"] = {"max_steps": 9}
        one["expected"] |= {"forbidden_tools": ["look_twice"]}
    files = {
        "seatrial.yaml": "version: 1\nagent: my_agent:build\ndefaults: {limits: {timeout_s: 1}}\n",
        "my_agent.py": AGENTS,
        "cases/all.jsonl": "".join(json.dumps(one) + "\n" for one in cases),
    }
    write_project(project, files)
    options = ("--isolation", request.param, "--concurrency", "3", "--output", "out", "--json")
    done = seatrial("run", *options, cwd=project, TMPDIR=str(temporary))
    assert done.returncode == 1, done.stderr
    assert list(temporary.iterdir()) == []
    return Finished(api.load(project / "out"), project, done.stdout)


def test_every_agent_ends_as_the_table_says(finished: Finished, request: pytest.FixtureRequest) -> None:
    table = TABLES[request.node.callspec.params["finished"]]
    ends = {}
    for record in finished.run.trials:
        if record.invalid_reason != "harness":
            assert record.case_id not in ends
            ends[record.case_id] = End(record.status, record.stop_reason, record.detail)
    wanted = {name.replace(" ", "."): end for name, end in table.items()}
    assert {name: begins_like(end, wanted[name]) for name, end in ends.items()} == wanted


def begins_like(end: End, wanted: End) -> End:
    """The end with no more of its reason than is wanted; nothing but no reason is like none."""
    return end._replace(detail=end.detail[: len(wanted.detail)]) if wanted.detail else end


DOCUMENTED = {
    "sleeps forever in a thread of its own": "sleeps",
    "async, and sleeps forever in C": "sleeps_in_c",
    "goes on when it is cancelled": "ignores_being_cancelled",
    "calls `os._exit(7)`": "exits",
    "segmentation fault": "segfaults",
    "fills its folder": "fills_its_folder",
    "fills its folder, and finds the disk full": "finds_the_disk_full",
    "leaves threads running": "leaves_threads",
    "changes working folder and environment": "changes_cwd_and_environment",
    "prints 50 MB": "prints_50_mb",
    "forks": "forks",
    "raises in a callback": "raises_in_a_callback",
    "raises `BaseException`": "raises_base_exception",
    "never answers an approval": "never_answers_an_approval",
}
"""The documentation's agents, by their names here."""


def test_the_documentation_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "running.md").read_text("utf-8")
    lines = page.partition("| agent | isolation | status | stop reason | message |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines.splitlines()[1:]]
    assert {agent for agent, *_ in rows} == set(DOCUMENTED)
    checked = set()
    for agent, isolations, *end in rows:
        for isolation in isolations.split(", "):
            name = DOCUMENTED[agent]
            found = TABLES[isolation].get(name) or TABLES[isolation][f"{name} as daemons"]
            assert end == [found.status, f"`{found.stop_reason}`", f"`{found.detail}`" if found.detail else "none"], (
                agent
            )
            checked.add((name, isolation))
    harms_the_run = {("exits", "thread"), ("segfaults", "thread"), ("finds_the_disk_full", "thread")}
    assert {(name, way) for name in DOCUMENTED.values() for way in TABLES} - checked == harms_the_run


def test_an_agent_that_ends_the_process_of_a_run_in_threads_costs_no_finished_trial(tmp_path: Path) -> None:
    cases = [{"id": name, "input": {"message": name}} for name in ("forks", "exits", "prints_50_mb")]
    files = {"seatrial.yaml": "version: 1\nagent: my_agent:build\n", "my_agent.py": AGENTS}
    write_project(tmp_path, files | {"cases/all.jsonl": "".join(json.dumps(one) + "\n" for one in cases)})
    run = ("run", "--concurrency", "1", "--output", "out")
    assert seatrial(*run, cwd=tmp_path).returncode == 7
    assert [record.case_id for record in api.load(tmp_path / "out").trials] == ["forks"]
    resumed = seatrial(*run, "--resume", "--isolation", "process", cwd=tmp_path)
    assert resumed.returncode == 1, resumed.stderr
    ends = {record.case_id: str(record.stop_reason) for record in api.load(tmp_path / "out").trials}
    assert ends == {"forks": "answered", "exits": "agent_error", "prints_50_mb": "answered"}


def test_what_was_recorded_before_the_end_is_kept(finished: Finished) -> None:
    for record in finished.run.trials:
        trace = finished.run.trace(record)
        if record.case_id != "never_answers_an_approval" and record.invalid_reason != "harness":
            assert [call.name for call in trace.tool_calls] == ["look"], record.case_id
            assert record.grade("forbidden_tools") is not None, record.case_id
        assert len(trace.log) < 70_000


def test_nothing_but_the_result_is_printed(finished: Finished) -> None:
    assert json.loads(finished.printed)["version"] == 1


def test_processes_print_into_their_log_until_they_die(finished: Finished) -> None:
    logs = {record.case_id: finished.run.trace(record).log for record in finished.run.trials}
    if "segfaults" in logs:
        assert logs["segfaults"].startswith("I am segfaults\n")
        assert logs["prints_50_mb_from_a_program"].endswith("more characters were printed")


def test_no_process_is_left(finished: Finished) -> None:
    if "leaves_programs" in {case.case_id for case in finished.run.cases}:
        pids = (finished.project / "outside").read_text().split()
        assert len(pids) == len(set(pids)) == 33
        assert [pid for pid in pids if _runs(int(pid))] == []


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
