"""One trial's life: what is made, who sees it, and that nothing is left or shared."""

from __future__ import annotations

import asyncio
import contextvars
import re
import stat
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.case import Case, Expected, Thresholds, Turn
from seatrial.core.fixture import FixtureSpec
from seatrial.core.trace import Observable
from seatrial.environment.failure import FixtureError, TrialOver
from seatrial.environment.folder import remove_tree
from seatrial.environment.trial import TrialEnvironment, current_trial
from seatrial.environment.workspace import FileFixture

WHOLE = {
    "identity": {"agent": "desk", "user": "u"},
    "database": {"sqlite": "t.sql"},
    "files": "files",
    "state": {"items": []},
    "tools": {"search": [{"otherwise": True, "returns": ["found"]}]},
    "outcome": {"rows": {"sql": "SELECT group_concat(n) FROM t"}, "items": {"state": "items"}},
}


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "t.sql").write_text("CREATE TABLE t(n INTEGER);", encoding="utf-8")
    (tmp_path / "files" / "deep").mkdir(parents=True)
    (tmp_path / "files" / "deep" / "note.txt").write_text("original", encoding="utf-8")
    return dict(WHOLE)


def test_a_trial_that_touches_nothing_makes_nothing(make_trial: Any, scratch: Path) -> None:
    trial = make_trial()
    with trial.activate():
        assert current_trial() is trial
    assert trial.observe() is None
    assert not trial.blocking
    trial.clean_up()
    assert list(scratch.iterdir()) == []


def test_outside_a_trial_there_is_none() -> None:
    with pytest.raises(RuntimeError, match="no trial is running here"):
        current_trial()


def test_trials_nest_and_are_left_in_order(make_trial: Any) -> None:
    outer, inner = make_trial(), make_trial()
    with outer.activate():
        with inner.activate():
            assert current_trial() is inner
        assert current_trial() is outer
    with pytest.raises(RuntimeError):
        current_trial()


def test_an_exception_leaves_no_current_trial(make_trial: Any) -> None:
    with pytest.raises(ValueError, match="x"), make_trial().activate():
        raise ValueError("x")
    with pytest.raises(RuntimeError):
        current_trial()


async def test_tasks_and_threads_of_the_trials_context_see_it(make_trial: Any) -> None:
    async def own() -> TrialEnvironment:
        await asyncio.sleep(0)
        return current_trial()

    async def inside(trial: TrialEnvironment) -> list[TrialEnvironment]:
        with trial.activate():
            context = contextvars.copy_context()
            in_thread = await asyncio.to_thread(current_trial)
            with ThreadPoolExecutor(1) as pool:
                in_pool = pool.submit(context.run, current_trial).result()
            return [await own(), await asyncio.create_task(own()), in_thread, in_pool]

    trials = [make_trial() for _ in range(5)]
    for trial, seen in zip(trials, await asyncio.gather(*map(inside, trials)), strict=True):
        assert seen == [trial] * 4


def test_a_bare_thread_is_told_what_it_needs(make_trial: Any) -> None:
    raised: list[str] = []

    def work() -> None:
        try:
            current_trial()
        except RuntimeError as error:
            raised.append(str(error))

    with make_trial().activate():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "copy_context" in raised[0]


def test_an_agent_that_got_the_trial_could_have_recorded(make_trial: Any) -> None:
    trial = make_trial()
    assert trial.recorder.observes == set()
    with trial.activate():
        current_trial()
    assert trial.recorder.observes == {Observable.TOOL_CALLS, Observable.HANDOFFS, Observable.APPROVALS}


def use(trial: TrialEnvironment, number: int, together: threading.Barrier | None = None) -> dict[str, Any] | None:
    """What an agent might do: write everywhere, alone with its own things."""
    trial.set_up()
    with trial.activate():
        mine = current_trial()
        if together is not None:
            together.wait()
        mine.database.execute("INSERT INTO t VALUES (?)", (number,))
        handle = mine.database.connect()
        handle.execute("INSERT INTO t VALUES (?)", (number + 100,))
        handle.commit()
        note = mine.workdir / "deep" / "note.txt"
        assert note.read_text(encoding="utf-8") == "original"
        note.write_text(str(number), encoding="utf-8")
        mine.state["items"].append(number)
        mine.identity["user"] = f"user-{number}"
        mine.tools.search(query=str(number)).append(number)
        return trial.observe()


def check(trials: list[TrialEnvironment], outcomes: list[Any], tmp_path: Path, scratch: Path) -> None:
    for number, (trial, outcome) in enumerate(zip(trials, outcomes, strict=True)):
        assert outcome == {"rows": f"{number},{number + 100}", "items": [number]}
        (call,) = trial.recorder.freeze()
        assert call.arguments == {"query": str(number)}
        assert trial.identity["user"] == f"user-{number}"
    folders = {trial.workdir for trial in trials}
    databases = {trial.database.path for trial in trials}
    assert len(folders) == len(databases) == 20
    assert (tmp_path / "files" / "deep" / "note.txt").read_text(encoding="utf-8") == "original"
    for trial in trials:
        trial.clean_up()
    assert [path.name[:8] for path in scratch.iterdir()] == ["template"]


def test_twenty_trials_in_threads_share_nothing(make_trial: Any, whole: Any, tmp_path: Path, scratch: Path) -> None:
    trials = [make_trial(**whole, set_up=False) for _ in range(20)]
    together = threading.Barrier(20)
    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda pair: use(pair[1], pair[0], together), enumerate(trials)))
    check(trials, outcomes, tmp_path, scratch)


async def test_twenty_trials_in_tasks_share_nothing(make_trial: Any, whole: Any, tmp_path: Path, scratch: Path) -> None:
    async def run(number: int, trial: TrialEnvironment) -> Any:
        await asyncio.sleep(0)
        if number % 2:
            return await asyncio.to_thread(use, trial, number)
        return use(trial, number)

    trials = [make_trial(**whole, set_up=False) for _ in range(20)]
    outcomes = await asyncio.gather(*(run(number, trial) for number, trial in enumerate(trials)))
    check(trials, list(outcomes), tmp_path, scratch)


def test_the_specs_own_values_are_never_touched(make_trial: Any) -> None:
    spec = FixtureSpec(identity={"agent": "a"}, state={"items": []}, secrets={"pin": "123456"})
    trial = FileFixture(spec, case=Case(id="a")).environment(1, 0)
    trial.identity["agent"] = "b"
    trial.state["items"].append(1)
    trial.secrets["pin"] = "654321"
    trial.faults.append("x")
    trial.approvals.append("x")
    assert spec == FixtureSpec(identity={"agent": "a"}, state={"items": []}, secrets={"pin": "123456"})


def test_without_a_scratch_folder_the_system_decides(whole: Any, tmp_path: Path) -> None:
    spec = FixtureSpec.model_validate({"folder": str(tmp_path), **whole})
    trial = FileFixture(spec, case=Case(id="a")).environment(1, 0)
    trial.set_up()
    folder = trial.workdir.parent
    assert trial.observe() == {"rows": None, "items": []}
    trial.clean_up()
    assert not folder.exists()


def test_read_only_files_and_folders_are_removed_too(make_trial: Any, whole: Any, scratch: Path) -> None:
    trial = make_trial(**whole)
    note = trial.workdir / "deep" / "note.txt"
    (trial.workdir / "link").symlink_to("/nowhere")
    note.chmod(stat.S_IRUSR)
    note.parent.chmod(stat.S_IRUSR)
    trial.clean_up()
    assert [path.name[:8] for path in scratch.iterdir()] == ["template"]


def test_a_folder_that_resists_is_made_writable_first(tmp_path: Path) -> None:
    locked = tmp_path / "a" / "b"
    locked.mkdir(parents=True)
    (locked / "c").write_text("x", encoding="utf-8")
    locked.chmod(0)
    (tmp_path / "a").chmod(0)
    remove_tree(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    remove_tree(tmp_path / "a")


def test_after_the_trial_nothing_is_made_again(make_trial: Any, scratch: Path) -> None:
    trial = make_trial()
    tool = trial.tool(len)
    trial.clean_up()
    for late in (lambda: trial.workdir, lambda: trial.database.path, lambda: tool("x")):
        with pytest.raises(TrialOver):
            late()
    assert list(scratch.iterdir()) == []


def test_files_that_are_missing_make_the_trial_invalid(make_trial: Any) -> None:
    with pytest.raises(FixtureError, match="files: FileNotFoundError"):
        make_trial(files="nothing")


def test_one_file_may_be_declared_instead_of_a_folder(make_trial: Any, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("x", encoding="utf-8")
    assert (make_trial(files="note.txt").workdir / "note.txt").read_text(encoding="utf-8") == "x"


def test_an_agent_cannot_look_its_expectations_up(make_trial: Any) -> None:
    case = Case(
        id="a",
        input={"q": 1},
        expected=Expected(max_steps=3),
        thresholds=Thresholds(trials=3),
        turns=(Turn(user="next", expected=Expected(max_steps=1)),),
        reference_context=("the answer",),
        graders=("my:grader",),
    )
    seen = TrialEnvironment(case).case
    assert (seen.id, seen.input, seen.turns[0].user) == ("a", {"q": 1}, "next")
    assert "max_steps" not in repr(seen).replace("max_steps=None", "")
    assert (seen.expected, seen.reference_context, seen.graders) == (Expected(), (), ())
    assert seen.expected.model_fields_set == set()


def test_recorded_events_belong_to_the_acting_agent(make_trial: Any) -> None:
    trial = make_trial(identity={"agent": "desk"})
    trial.record(ToolCall("a"))
    trial.record(HandoffEvent("desk", "boss"))
    trial.record(ModelCall("m"))
    trial.record(ToolCall("b", agent="auditor"))
    assert [event.agent for event in trial.recorder.freeze()] == ["desk", "desk", "boss", "auditor"]
    with pytest.raises(TypeError, match="not str"):
        trial.record("event")


def test_config_and_seed_reach_the_trial(make_trial: Any) -> None:
    trial = make_trial(config={"model": "small"}, seed=7)
    assert (trial.config, trial.seed, trial.trial_index, trial.fixture_name) == ({"model": "small"}, 7, 1, "")


@pytest.fixture
def memory() -> Any:
    module = types.ModuleType("watched_memory")
    module.CACHE = {"a": 1}
    sys.modules["watched_memory"] = module
    yield module
    del sys.modules["watched_memory"]


def test_watched_globals_must_come_back_as_they_were(make_trial: Any, memory: Any) -> None:
    watch = {"globals": ["watched_memory:CACHE"]}
    make_trial(watch=watch).clean_up()
    trial = make_trial(watch=watch)
    memory.CACHE["leaked"] = True
    with pytest.raises(
        FixtureError, match=r"watched globals came back changed: watched_memory:CACHE \(leaked: \+ true"
    ):
        trial.clean_up()
    with pytest.raises(FixtureError, match="watch: UsageError"):
        make_trial(watch={"globals": ["watched_memory:CASH"]})


def test_attributes_of_watched_objects_must_come_back_too(make_trial: Any, memory: Any) -> None:
    memory.CACHE = types.SimpleNamespace(hits=0)
    trial = make_trial(watch={"globals": ["watched_memory:CACHE"]})
    memory.CACHE.hits += 1
    with pytest.raises(FixtureError, match=r"hits: 0 -> 1"):
        trial.clean_up()


def test_a_leak_names_the_trials_that_may_have_done_it(make_trial: Any, memory: Any) -> None:
    watch = {"globals": ["watched_memory:CACHE"]}
    first, second = make_trial(watch=watch), make_trial(watch=watch)
    memory.CACHE["leaked"] = True
    for trial in (first, second):
        with pytest.raises(FixtureError, match="at the same time ran a-case#1"):
            trial.clean_up()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda trial: trial.tool(len, agent=3), "the agent of a tool must be text or None, not 3 (int)"),
        (lambda trial: trial.approve(3, {}), "the action to approve must be text, not 3 (int)"),
        (lambda trial: trial.approve("pay", {}, call_id=3), "the call_id of an approval must be text or None"),
        (lambda trial: trial.approve("pay", {}, agent=["x"]), "the agent of an approval must be text or None"),
    ],
)
def test_a_name_or_id_that_is_no_text_is_refused_where_it_is_given(make_trial: Any, call: Any, message: str) -> None:
    trial = make_trial()
    with pytest.raises(TypeError, match=re.escape(message)):
        call(trial)
    assert trial.recorder.freeze() == ()
