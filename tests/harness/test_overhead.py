"""What a trial costs beside its agent, in counts that no machine changes: calls, lines, files, threads, memory.

Each count is taken over two runs that differ in nothing but their number of trials; what both share drops out. So that
a slow machine counts the same as a fast one, the clock that spaces looks at the surroundings stands still, or goes on
by more than their distance each time it is read, and threads that wake by the clock are not counted. Calls of a whole
trial are counted in a process where nothing else is loaded: a framework that some other test or plugin has loaded takes
part in trials.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import seatrial
from packed import unpacked
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.trial import TrialEnvironment
from seatrial.harness.comparing import side_at
from seatrial.harness.gating import Candidate
from seatrial.harness.plan import plan
from seatrial.harness.request import Request
from seatrial.harness.runs import Run, execute
from seatrial.report.files import json_text, write_results
from seatrial.store.frames import TRACES
from seatrial.store.rundir import RunWriter

FEW, MANY = 10, 40
COMPRESS, DECOMPRESS = "None.ZstdCompressor.compress", "None.ZstdDecompressor.decompress"


async def echo(task: str) -> str:
    return task


def blocking_echo(task: str) -> str:
    return task


def project(folder: Path, cases: int = 1) -> Path:
    """Cases that an echo passes."""
    (folder / "cases").mkdir(parents=True)
    case = {"input": "x", "expected": {"answer": "x", "response": {"max_characters": 9}}}
    lines = [json.dumps({"id": f"c{number}", **case}) + "\n" for number in range(cases)]
    (folder / "cases" / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "seatrial.yaml").write_text("version: 1\nagent: operator:not_\n", encoding="utf-8")
    return folder


def run(root: Path, trials: int, agent: Any = echo, **options: Any) -> Run:
    return seatrial.run(root, agent=agent, trials=trials, **options)


BY_THE_CLOCK = ("seatrial-watchdog", "seatrial-journal")
"""Threads that wake as often as time passes, whatever the trials do: four times and twice a second."""


def counted(act: Callable[[], object]) -> Counter[str]:
    """Calls while this runs: `module.function` of C code, `def function` of Python code.

    In whichever thread, but for those BY_THE_CLOCK; the collector, whose callbacks would count, is off.
    """
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, what: Any) -> None:
        if event == "c_call":
            calls[f"{what.__module__}.{what.__qualname__}"] += 1
        elif event == "call":
            calls["def"] += 1
            calls[f"def {frame.f_code.co_qualname}"] += 1

    def join(frame: FrameType, event: str, what: Any) -> None:
        sys.setprofile(None if threading.current_thread().name in BY_THE_CLOCK else note)

    gc.disable()
    threading.setprofile(join)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()
    return calls


@pytest.fixture(scope="module")
def a_trial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Calls a trial of an async agent while no look at its surroundings is due."""
    return costs_alone(tmp_path_factory.mktemp("async"), echo)


def costs_alone(*arguments: Any) -> dict[str, float]:
    """`costs` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(costs, *arguments).result()


def costs(folder: Path, agent: Any, tick_s: float = 0.0) -> dict[str, float]:
    """Calls for each trial of a run.

    Its looks at the surroundings are spaced by a clock that goes on by `tick_s` each time it is read.
    """
    root, clock = project(folder), count(1.0, tick_s).__next__

    def trials(number: int) -> Run:
        return execute(plan(Request(project=root, agent=agent, trials=number, seed=1)), clock=clock)

    trials(2)
    few, many = counted(lambda: trials(FEW)), counted(lambda: trials(MANY))
    return Counter({name: (many[name] - few[name]) / (MANY - FEW) for name in many if many[name] != few[name]})


def test_a_trace_and_a_record_are_each_serialised_once(a_trial: dict[str, float]) -> None:
    lines = [name for name in a_trial if name.endswith(".to_json") and not name.startswith("def")]
    assert a_trial["orjson.dumps"] == 2
    assert sum(a_trial[name] for name in lines) == pytest.approx(0, abs=0.1)  # rows of results.json, 64 at a time
    assert a_trial["None.SchemaSerializer.to_python"] == 0
    assert a_trial["_json.encode_basestring"] == a_trial["None.c_make_encoder"] == 0


def test_models_are_built_once(a_trial: dict[str, float]) -> None:
    validated = [name for name in a_trial if "SchemaValidator" in name]
    built = sum(a_trial[name] for name in validated)
    assert built <= 1  # the record again for results.json
    assert a_trial["def BaseModel.model_copy"] == 0


def test_nothing_is_opened_for_a_trial_and_two_lines_are_written(a_trial: dict[str, float]) -> None:
    assert a_trial["posix.write"] == 2
    assert a_trial["posix.open"] == a_trial["_io.open"] == a_trial["io.open"] == 0
    assert a_trial["posix.fsync"] == 0


def test_a_trace_is_compressed_once_and_not_at_all_when_it_is_short(a_trial: dict[str, float], tmp_path: Path) -> None:
    assert a_trial[COMPRESS] == 0
    assert costs(tmp_path, reporting(20))[COMPRESS] == 1


def test_grading_again_compresses_no_trace(tmp_path: Path) -> None:
    root = project(tmp_path)
    stored = run(root, FEW, reporting(20)).folder
    calls = counted(lambda: seatrial.regrade(stored, project=root, output=tmp_path / "again"))
    assert calls[COMPRESS] == 0
    assert calls[DECOMPRESS] == 2 * FEW  # to verify the run, and to grade it
    assert (tmp_path / "again" / TRACES).read_bytes() == (stored / TRACES).read_bytes()


def test_a_trace_that_repeats_itself_takes_a_small_part_of_its_text_on_the_disk(tmp_path: Path) -> None:
    folder = run(project(tmp_path), FEW, reporting(200)).folder
    assert (folder / TRACES).stat().st_size * 8 < len(unpacked(folder / TRACES))


def test_no_folder_is_made_for_a_trial_that_touches_none(a_trial: dict[str, float]) -> None:
    assert a_trial["posix.mkdir"] == a_trial["posix.rmdir"] == 0


def test_no_thread_is_started_for_an_async_agent(a_trial: dict[str, float]) -> None:
    assert a_trial["_thread.start_new_thread"] == 0


def test_nothing_is_copied_deeply_compiled_or_imported_for_a_trial(a_trial: dict[str, float]) -> None:
    for name in ("deepcopy", "_compile", "import_module", "_find_and_load", "signature"):
        assert a_trial[f"def {name}"] == 0, name


def test_a_trial_takes_few_calls_and_two_looks_at_its_surroundings_few_more(
    a_trial: dict[str, float], tmp_path: Path
) -> None:
    assert a_trial["def"] <= 246
    looked_at = costs_alone(tmp_path, echo, 1.0)
    assert looked_at["def Surroundings._look"] > 0
    assert looked_at["def"] <= 268


def reporting(calls: int) -> Any:
    """An agent that reports as many tool calls."""

    async def agent(task: str) -> str:
        trial = seatrial.current_trial()
        for number in range(calls):
            trial.record(seatrial.ToolCall("look", {"n": number}, result="seen"))
        return task

    return agent


def calling(calls: int) -> Any:
    """An agent that calls a tool as often, through the trial."""

    async def agent(task: str) -> str:
        tool = seatrial.current_trial().tool(look)
        for number in range(calls):
            tool(n=number)
        return task

    return agent


def look(n: int) -> str:
    return "seen"


def each_call(folder: Path, agent: Callable[[int], Any]) -> dict[str, float]:
    """Calls that each tool call in a trial adds, from its beginning to its line of the trace."""
    some, more = costs(folder / "some", agent(2)), costs(folder / "more", agent(22))
    return Counter({name: (more[name] - some[name]) / 20 for name in more})


def test_a_reported_call_takes_few_calls_and_is_built_once(tmp_path: Path) -> None:
    adds = each_call(tmp_path, reporting)
    assert adds["def"] <= 32
    assert adds["def Frozen.trusted"] == 1
    assert not [name for name in adds if "SchemaValidator" in name and adds[name]]
    assert adds["None.SchemaSerializer.to_python"] == adds["def replace"] == 0


def test_a_tool_called_through_the_trial_takes_few_calls_and_its_signature_is_read_once(tmp_path: Path) -> None:
    adds = each_call(tmp_path, calling)
    assert adds["def"] <= 56
    assert adds["def Signature.bind"] == adds["def signature"] == 0
    assert adds["def iscoroutinefunction"] == adds["def isawaitable"] == 0


def apiece(act: Callable[[int], object]) -> float:
    """Calls of Python code for each of whatever `act` is given the number of."""
    act(FEW)  # what is made once
    return (counted(lambda: act(MANY))["def"] - counted(lambda: act(FEW))["def"]) / (MANY - FEW)


def test_a_summary_takes_few_calls_a_case_and_fewer_for_each_further_trial(tmp_path: Path) -> None:
    of_cases = {number: run(project(tmp_path / f"c{number}", number), 1) for number in (FEW, MANY)}
    assert apiece(lambda number: written_again(of_cases[number])) <= 67
    of_trials = {number: run(project(tmp_path / f"t{number}"), number) for number in (FEW, MANY)}
    assert apiece(lambda number: written_again(of_trials[number])) <= 36


def written_again(kept: Run) -> None:
    """The summary of a run from its records."""
    write_results(kept.folder, replace(kept).results())


def test_a_case_is_put_on_record_and_planned_in_few_calls(tmp_path: Path) -> None:
    roots = {number: project(tmp_path / f"c{number}", number) for number in (FEW, MANY)}
    plans = {number: plan(Request(project=root, agent=echo)) for number, root in roots.items()}
    numbers = count()

    def create(cases: int) -> None:
        planned = plans[cases]
        definitions = [item.case for item in planned.cases]
        RunWriter.create(tmp_path / f"run{next(numbers)}", planned.info, definitions, planned.redactor).close()

    assert apiece(create) <= 12
    assert apiece(lambda number: plan(Request(project=roots[number], agent=echo))) <= 320


@pytest.mark.slow
def test_a_blocking_agent_has_one_thread_a_trial_and_no_more_at_once_than_trials(tmp_path: Path) -> None:
    cost = costs(tmp_path / "counted", blocking_echo)
    assert cost["_thread.start_new_thread"] == 1

    seen: list[int] = []

    def agent(task: str) -> str:
        seen.append(sum(thread.name.removeprefix("seatrial-").isdecimal() for thread in threading.enumerate()))
        return task

    run(project(tmp_path / "watched"), 60, agent, concurrency=4)
    assert 1 <= max(seen) <= 4


def test_after_its_first_trial_a_run_imports_nothing(tmp_path: Path) -> None:
    root = project(tmp_path)
    run(root, 1)
    before = set(sys.modules)
    run(root, 30)
    assert set(sys.modules) == before


def test_no_record_trace_or_environment_outlives_its_trial(tmp_path: Path) -> None:
    kinds = (TrialRecord, Trace, TrialEnvironment)
    gc.collect()
    before = sum(isinstance(thing, kinds) for thing in gc.get_objects())
    kept = run(project(tmp_path), MANY)
    assert kept.exit_code == 0
    alive = [thing for thing in gc.get_objects() if isinstance(thing, kinds)]
    assert len(alive) - before <= 2
    assert len(kept.trials) == MANY


def test_who_reads_compares_or_judges_a_run_holds_no_record(tmp_path: Path) -> None:
    folder = run(project(tmp_path), MANY).folder
    gc.collect()
    before = sum(isinstance(thing, TrialRecord) for thing in gc.get_objects())
    read, side, candidate = seatrial.load(folder), side_at(folder), Candidate([folder])
    assert (read.exit_code, side.cases[0].passes, candidate.results[0].valid) == (0, MANY, MANY)
    assert json_text(candidate.summary()) == json_text(read.summary())
    gc.collect()
    assert sum(isinstance(thing, TrialRecord) for thing in gc.get_objects()) - before <= 2


def test_a_decision_on_one_run_reads_no_record_twice(tmp_path: Path) -> None:
    folder = run(project(tmp_path), MANY).folder
    calls = counted(lambda: Candidate([folder]).results)
    assert calls["def BaseModel.model_validate_json"] <= 2  # what the run says of itself


def test_trials_leave_no_cycle_for_the_collector(tmp_path: Path) -> None:
    root, kinds = project(tmp_path), ("TrialEnvironment", "TrialAttempt", "Recorder", "Toolbox")

    def alive() -> Counter[str]:
        names = (type(thing).__name__ for thing in gc.get_objects())
        return Counter(name for name in names if name in kinds)

    run(root, 2)
    gc.collect()
    before = alive()
    gc.disable()
    try:
        run(root, FEW)
        after = alive()
    finally:
        gc.enable()
    assert all(after[kind] - before[kind] <= 2 for kind in kinds), (before, after)


@pytest.mark.slow
def test_some_two_hundred_bytes_are_kept_of_a_trial(tmp_path: Path) -> None:
    """Of one with many others like it: its row, and its place among those of its case."""
    root = project(tmp_path)
    sizes = []
    for trials in (200, 200, 1_200):
        tracemalloc.start()
        try:
            kept = run(root, trials)
            assert kept.exit_code == 0
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        del kept
    assert (sizes[2] - sizes[1]) / 1_000 < 300
