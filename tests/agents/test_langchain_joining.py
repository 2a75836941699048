"""LangChain behind a plain function is observed from the first call on, whoever loads it and when."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from seatrial.agents.langchain import joining
from seatrial.agents.on_load import _finder, _follow

AGENT = """
import asyncio

def calling(task):
    from langchain_core.tools import tool
    from seatrial.testing import ScriptedChatModel, say

    @tool
    def look(order: str) -> str:
        "Look an order up."
        return "shipped"

    answer = ScriptedChatModel(script=[say(calls=[("look", {"order": "O-1"}, "1")])]).invoke(task)
    for call in answer.tool_calls:
        look.invoke(call)
    return "done"

def sync(task):
    return calling(task)

async def same_task(task):
    return calling(task)

async def loaded_elsewhere(task):
    def load():
        import langchain_core.tools
    await asyncio.to_thread(load)
    return await asyncio.create_task(asyncio.to_thread(calling, task))

def whether_traced(task):
    from langsmith.utils import tracing_is_enabled
    return f"{tracing_is_enabled()} {calling(task)}"

def never_imports(task):
    return task
"""
PROGRAM = """
import asyncio, json, sys
import agent
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.environment.workspace import FileFixture
from seatrial.graders import graders_for
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings

class Kept:
    records = []
    def write(self, record, trace):
        self.records.append((record, trace))
        return record

assert "langchain_core" not in sys.modules
before = list(sys.meta_path)
case = Case(id="c", input="go", expected={"required_tools": ["look"], "max_steps": 1})
fixture = FileFixture(FixtureSpec(), case=case)
planned = PlannedCase(case, case.digest, graders_for(case), trials=TRIALS, fixture=fixture)
executor = LocalExecutor(agent_for(getattr(agent, WHICH), AgentSpec()), TrialSettings(), CONCURRENCY)
executor.run(FixedTrials([planned]), Kept())
print(json.dumps({
    "trials": [
        [record.status, sorted(trace.observes), [call.name for call in trace.tool_calls], trace.steps, record.detail,
         trace.output]
        for record, trace in Kept.records
    ],
    "loaded": "langchain_core" in sys.modules,
    "finders": len(sys.meta_path) - len(before),
}))
"""


def ran(folder: Path, which: str, *, trials: int = 2, concurrency: int = 1, before: str = "", **env: str) -> Any:
    """Trials of one of the agents in a fresh interpreter."""
    (folder / "agent.py").write_text(AGENT)
    program = PROGRAM.replace("WHICH", repr(which)).replace("TRIALS", str(trials))
    program = before + program.replace("CONCURRENCY", str(concurrency))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("which", ["sync", "same_task", "loaded_elsewhere"])
def test_equal_trials_are_observed_alike_from_the_first_on(which: str, tmp_path: Path) -> None:
    first, second = ran(tmp_path, which)["trials"]
    assert first == second
    assert first[0] == "passed"
    assert {"tool_calls", "model_calls"} <= set(first[1])
    assert first[2:4] == [["look"], 1]


@pytest.mark.slow
def test_trials_that_load_it_all_at_once_are_observed_alike(tmp_path: Path) -> None:
    trials = ran(tmp_path, "sync", trials=6, concurrency=6)["trials"]
    assert len(trials) == 6
    assert all(trial == trials[0] for trial in trials)
    assert trials[0][0] == "passed"


@pytest.mark.slow
def test_nothing_is_traced_in_the_trial_that_loads_it(tmp_path: Path) -> None:
    unreachable = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_API_KEY": "x"}
    found = ran(tmp_path, "whether_traced", **unreachable)
    assert [trial[-1] for trial in found["trials"]] == ["False done", "False done"]


@pytest.mark.slow
def test_an_agent_without_langchain_does_not_load_it(tmp_path: Path) -> None:
    found = ran(tmp_path, "never_imports")
    assert found["loaded"] is False
    assert [trial[1] for trial in found["trials"]] == [["output"], ["output"]]
    assert found["finders"] == 1


@pytest.mark.slow
def test_where_no_framework_is_installed_nothing_waits_for_one(tmp_path: Path) -> None:
    hide = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
langchain = ("langchain_core", "langsmith")
hidden = (*langchain, "llama_index", "llama_index_instrumentation", "agents", "pydantic_ai", "google")
def without(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else found(name, path, target)
PathFinder.find_spec = without
"""
    found = ran(tmp_path, "never_imports", before=hide)
    assert found["finders"] == 0
    assert found["loaded"] is False


def test_the_finder_looks_at_two_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [])
    assert _finder.find_spec("json") is None
    assert _finder.find_spec("langchain_core.tracers.context") is None


def test_a_module_that_cannot_be_followed_is_loaded_all_the_same() -> None:
    class Loader:
        __slots__ = ("loaded",)

        def exec_module(self, module: ModuleType) -> None:
            self.loaded = module

    class Open(Loader):
        pass

    def breaks(module: ModuleType) -> None:
        raise RuntimeError

    for loader in (Loader(), Open()):
        _follow(loader, breaks)
        module = ModuleType("m")
        loader.exec_module(module)
        assert loader.loaded is module
    _follow(None, breaks)


class LoadedLangSmith(ModuleType):
    """What LangSmith is told for the whole process."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__("langsmith.run_trees")
        self.told: list[bool | None] = []
        self.meanwhile = meanwhile

    def configure(self, *, enabled: bool | None) -> None:
        self.told.append(enabled)
        if enabled is False:
            self.meanwhile()


@pytest.fixture
def not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "langsmith.run_trees", raising=False)


@pytest.mark.usefixtures("not_loaded")
def test_what_is_loaded_in_a_trial_is_silent_until_the_last_trial_that_began_before_has_ended() -> None:
    loaded, first, second = LoadedLangSmith(), object(), object()
    for who in (first, second):
        assert joining.hush(who) is None
    joining._silence(loaded)
    joining.unhush(first, None)
    assert loaded.told == [False]
    joining.unhush(second, None)
    assert loaded.told == [False, None]


@pytest.mark.usefixtures("not_loaded")
def test_the_last_trial_may_end_while_it_is_being_silenced() -> None:
    who = object()
    loaded = LoadedLangSmith(lambda: joining.unhush(who, None))
    joining.hush(who)
    joining._silence(loaded)
    assert loaded.told == [False, None]


@pytest.mark.usefixtures("not_loaded")
def test_what_is_loaded_outside_trials_is_left_as_it_is() -> None:
    loaded = LoadedLangSmith()
    with joining.untraced():
        pass
    joining._silence(loaded)
    assert loaded.told == []
