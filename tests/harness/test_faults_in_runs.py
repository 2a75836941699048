"""Faults seen in the field, each as it was seen: a whole run of a project, and everything that it shows and writes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import seatrial as api
from packed import unpacked
from projects import case, seatrial, write_project
from seatrial.harness.runs import Run

posix = pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")


def ends(run: Run) -> list[tuple[str, str, str]]:
    return sorted((record.case_id, str(record.status), str(record.stop_reason)) for record in run.trials)


def on_a_terminal(*arguments: str, cwd: Path) -> tuple[int, str]:
    """Exit code of the real command, and what it shows on a terminal."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(sys.executable, [sys.executable, "-m", "seatrial", *arguments], {**os.environ, "TERM": "xterm"})
    shown = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end has closed
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode("utf-8", "replace")


@posix
@pytest.mark.slow
def test_bl_060_a_bar_quiet_and_a_file_give_the_same_verdicts_and_exit_code(tmp_path: Path) -> None:
    cases = {"cases/a.yaml": case("a"), "cases/b.yaml": case("b", message="raise"), "cases/c.yaml": case("c")}
    write_project(tmp_path, cases)
    code, shown = on_a_terminal("run", "--output", "bar", cwd=tmp_path)
    assert "\x1b[" in shown
    codes = [code, seatrial("run", "--quiet", "--output", "quiet", cwd=tmp_path).returncode]
    to_file = seatrial("run", "--json", "--output", "file", cwd=tmp_path)
    assert json.loads(to_file.stdout)["figures"]["verdict"] == "failed"
    assert [*codes, to_file.returncode] == [1, 1, 1]
    wanted = [("a", "passed", "answered"), ("b", "failed", "agent_error"), ("c", "passed", "answered")]
    assert [ends(api.load(tmp_path / name)) for name in ("bar", "quiet", "file")] == [wanted] * 3


@pytest.mark.slow
def test_bl_062_the_first_error_is_all_that_any_report_says_and_other_cases_are_graded(tmp_path: Path) -> None:
    texts = {name: f"id: {name}\ninput: {message}\n{GRADED}" for name, message in NAMED.items()}
    write_project(
        tmp_path,
        {
            "my_graders.py": "def sees(context):\n    return len(context.output) > 0\n",
            "fixtures/f/fixture.yaml": "state: {n: 1}\noutcome: {n: {state: n}}\n",
            **{f"cases/{name}.yaml": text for name, text in texts.items()},
        },
    )
    done = seatrial("run", "--output", "out", cwd=tmp_path)
    reports = ("--junit", "r.xml", "--markdown", "r.md")
    assert seatrial("report", "out", *reports, cwd=tmp_path).returncode == 0
    shown = [done.stdout + done.stderr, seatrial("show", "out", "bad", cwd=tmp_path).stdout]
    shown += [(tmp_path / name).read_text("utf-8") for name in ("r.xml", "r.md", "out/results.json")]
    assert done.returncode == 1
    assert ["token expired" in text for text in shown] == [True] * len(shown)
    assert ["NoneType" in text for text in shown] == [False] * len(shown)
    run = api.load(tmp_path / "out")
    assert ends(run) == [("bad", "failed", "agent_error"), *((name, "passed", "answered") for name in ("fine", "good"))]
    assert [case.reason for case in run.cases if case.case_id == "bad"] == ["raised RuntimeError: token expired"]


GRADED = """
environment: {fixture: f}
expected: {answer: hello, outcome: {n: 1}, response: {max_characters: 99}}
graders: [my_graders:sees]
"""
NAMED = {"bad": "raise", "fine": "hello", "good": "hello"}

CAPPED = """
import os
import time
from pathlib import Path
from typing import TypedDict

from langgraph.graph import StateGraph

from seatrial import AgentRun, grader

HERE = Path(__file__).parent


def note(name, move):
    descriptor = os.open(HERE / "moves" / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{move}\\n".encode())
    os.close(descriptor)


def busy(name, text=""):
    note("all", "+1")
    note(name, "+1")
    if text:
        note("order", text)
    time.sleep(0.02)
    note(name, "-1")
    note("all", "-1")


def blocking(task):
    busy("agent", task)
    return task


async def later(task):
    busy("agent", task)
    return task


class Adapter:
    def reset(self, fixture):
        pass

    def invoke(self, case):
        busy("agent", case["input"])
        return AgentRun(case["input"])


def graph():
    class State(TypedDict):
        messages: list

    def node(state):
        busy("agent", state["messages"][-1].content)
        return {"messages": state["messages"]}

    made = StateGraph(State)
    made.add_node("n", node)
    made.set_entry_point("n")
    made.set_finish_point("n")
    return made.compile()


graph = graph()


@grader(judge=True)
def judges(context):
    busy("judge")
    return True
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "isolation", "cap"),
    [
        *((agent, "thread", 3) for agent in ("blocking", "later", "Adapter", "graph")),
        ("blocking", "thread", 1),
        *(
            pytest.param("blocking", "process", cap, marks=pytest.mark.skipif(os.name == "nt", reason="slow there"))
            for cap in (3, 1)
        ),
    ],
)
def test_bl_068_the_cap_holds_for_agents_of_every_kind_and_with_their_judges(
    tmp_path: Path, agent: str, isolation: str, cap: int
) -> None:
    lines = [json.dumps({"id": f"c{n:02}", "input": f"word{n}", "graders": ["my_agent:judges"]}) for n in range(30)]
    write_project(tmp_path, {"my_agent.py": CAPPED, "cases/all.jsonl": "\n".join(lines) + "\n", "moves/agent": ""})
    run = api.run(tmp_path, agent=f"my_agent:{agent}", isolation=isolation, concurrency=cap)
    assert [str(record.status) for record in run.trials] == ["passed"] * 30
    for name in ("agent", "judge", "all"):
        moves = [int(line) for line in (tmp_path / "moves" / name).read_text().split()]
        assert moves.count(1) == moves.count(-1) == (60 if name == "all" else 30)
        peak = max(sum(moves[:end]) for end in range(len(moves) + 1))
        assert peak <= cap, name
    if cap == 1:
        assert (tmp_path / "moves" / "order").read_text().split() == [f"word{n}" for n in range(30)]


IN_A_LOOP = """
import asyncio
before = asyncio.get_event_loop_policy()
import seatrial
assert asyncio.get_event_loop_policy() is before


async def main():
    here = asyncio.get_running_loop()
    assert seatrial.run(".").exit_code == 0
    assert asyncio.get_running_loop() is here
    await asyncio.sleep(0)


asyncio.run(main())
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)


def cell():
    done.append(seatrial.run(".").exit_code)
    loop.call_soon(loop.stop)


done = []
loop.call_soon(cell)
loop.run_forever()  # as in a notebook: it runs before the cell, and after it
assert done == [0]
assert asyncio.get_event_loop_policy() is before
assert asyncio.get_event_loop() is loop
print("worked")
"""


@pytest.mark.slow
def test_bl_070_the_sync_door_works_under_a_running_loop_and_importing_changes_no_policy(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/a.yaml": case("a")})
    done = subprocess.run(
        [sys.executable, "-c", IN_A_LOOP], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "worked\n"), done.stderr


def test_bl_096_odd_numbers_in_outputs_calls_and_outcomes_leave_every_file_strict(tmp_path: Path) -> None:
    odd = {"nan": math.nan, "inf": math.inf, "minus": -math.inf}

    async def agent(task: str) -> api.AgentRun:
        trial = api.current_trial()
        trial.state["odd"] = odd
        return api.AgentRun(odd, tool_calls=[api.ToolCall("look", {"odd": odd}, result=odd)])

    fixture = {"fixtures/f/fixture.yaml": "state: {odd: null}\noutcome: {odd: {state: odd}}\n"}
    written = "id: a\ninput: x\nenvironment: {fixture: f}\n"
    write_project(tmp_path, {"cases/a.yaml": written, **fixture})
    run = api.run(tmp_path, agent=agent)
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    assert {"run.json", "results.json", "cases.jsonl", "trials.jsonl", "traces.jsonl.zst"} <= {
        path.name for path in files
    }
    for path in files:
        text = unpacked(path).decode()
        for line in text.splitlines() if ".jsonl" in path.suffixes else [text]:
            json.loads(line, parse_constant=pytest.fail)
    (record,) = api.load(run.folder).trials
    (call,) = api.load(run.folder).trace(record).tool_calls
    assert record.outcome is not None
    for held in (record.output, record.outcome["odd"], call.arguments["odd"], call.result):
        assert [held[name]["value"] for name in odd] == ["nan", "inf", "-inf"]


def test_bl_108_a_trial_pays_for_a_token_that_created_a_cache_entry_once(tmp_path: Path) -> None:
    prices = "version: 1\nprices: {m: {input: 3.00, cached: 0.30, cache_write: 3.75, output: 15.0}}\n"
    write_project(tmp_path, {"seatrial.yaml": prices, "cases/a.yaml": case("a")})
    usage = [{"model": "m", "input": 2000, "output": 0, "cached": 500, "cache_write": 300}]
    run = api.run(tmp_path, agent=lambda task: api.AgentRun(task, usage=usage))
    assert run.trials[0].cost_usd == pytest.approx(0.004875, abs=1e-15)
    assert run.summary()["figures"]["cost"]["total"]["usd"] == pytest.approx(0.004875, abs=1e-15)
