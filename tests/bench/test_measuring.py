"""Processes are measured in turn, each figure once, and a system that brings none says why."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from benchmarks.__main__ import main, measured_rows
from benchmarks.measuring import Bench, Result, System, cell, turns
from benchmarks.peers import peers_python
from benchmarks.rows import ROWS
from benchmarks.rows.running import growth
from benchmarks.sizes import FULL, QUICK, TINY
from benchmarks.table import OURS, Cell, Goal, Row
from benchmarks.task import CALL_SIZE, CALLS, Task, calls, question
from hypothesis import given
from hypothesis import strategies as st


def bench(place: Path) -> Bench:
    floor = System("floor", "benchmarks.systems.floor", Path(sys.executable))
    return Bench({"floor": floor, "absent": System("absent", "none", None, "not installed (offline)")}, TINY, place)


def result(peak_mb: float = 1.0) -> Result:
    return Result(seconds=1.0, peak_mb=peak_mb, disk_mb=0.0, count=1)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(-1, 5)))
def test_everyone_has_as_many_turns_as_wanted_and_nobody_two_before_another_has_one(wanted: dict[str, int]) -> None:
    order = list(turns(wanted))
    assert {name: order.count(name) for name in wanted} == {name: max(0, times) for name, times in wanted.items()}
    for at, name in enumerate(order):
        had = order[:at].count(name)
        assert all(order[:at].count(other) >= min(had, times) for other, times in wanted.items())


def test_a_system_that_is_not_installed_is_a_cell_with_the_reason(tmp_path: Path) -> None:
    task = Task("trials", cases=3)
    found = bench(tmp_path).cells({"absent": task}, lambda one: one.seconds)
    assert (found["absent"].value, found["absent"].text()) == (None, "not installed (offline)")


@pytest.mark.slow
def test_what_two_rows_need_is_measured_once(tmp_path: Path) -> None:
    measuring, task = bench(tmp_path), Task("trials", cases=3)
    (first,) = measuring.results({"floor": task})["floor"]
    assert measuring.results({"floor": task})["floor"] == [first]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_process_that_fails_says_why_in_its_cell(tmp_path: Path) -> None:
    found = bench(tmp_path).cells({"floor": Task("unheard_of", cases=3)}, lambda one: one.seconds)
    assert "unheard_of" in found["floor"].text()


def test_growth_is_large_over_small_and_tells_of_another_size() -> None:
    found = growth([result(50), result(40), result(60)], [result(75)], 10_000)
    assert (found.value, found.text()) == (1.5, "1.50 (50 to 75 MB at 10,000)")
    assert growth("failed", [result()]).text() == "failed"
    assert cell([result(3), result(5)], lambda one: one.peak_mb).value == 4


def test_every_agent_gets_the_same_calls_of_the_promised_size() -> None:
    made = list(calls(question(7)))
    assert made == list(calls(question(7)))
    assert [number for number, _ in made] == list(range(CALLS))
    assert {len(text) for _, text in made} == {CALL_SIZE}
    assert {text for _, text in made}.isdisjoint(text for _, text in calls(question(8)))


def test_small_sizes_are_smaller_in_everything() -> None:
    full, quick, tiny = (asdict(sizes) for sizes in (FULL, QUICK, TINY))
    for name in full.keys() - {"name"}:
        assert tiny[name] <= quick[name] <= full[name], name


def test_a_row_that_does_not_exist_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--rows", "overhead,memry"])
    assert ended.value.code == 2
    assert "there is no row 'memry'; rows are overhead" in capsys.readouterr().err
    assert "memory" in ROWS


def test_ctrl_c_leaves_the_rows_that_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one(_: Bench) -> list[Row]:
        return [Row("one", "s", {OURS: Cell((1.0,))}, Goal(2.0))]

    def stopped(_: Bench) -> list[Row]:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.__main__.ROWS", {"one": one, "two": stopped, "three": one})
    assert [row.name for row in measured_rows(bench(tmp_path), ["three", "two", "one"])] == ["one"]


@pytest.mark.slow
def test_pins_that_cannot_be_installed_are_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    pins = tmp_path / "constraints.txt"
    pins.write_text("surely-no-such-package==1.0\n")
    python, reason = peers_python(tmp_path / "venv", pins)
    assert python is None
    assert reason.startswith("not installed (")
    assert "surely-no-such-package" in reason


def test_an_environment_made_from_these_pins_is_used_as_it_is(tmp_path: Path) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("a==1\n")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "constraints.txt").write_text("a==1\n")
    python, reason = peers_python(tmp_path / "venv", pins)
    assert (python is not None and tmp_path / "venv" in python.parents, reason) == (True, "")


def test_peers_are_pinned_to_one_version_each() -> None:
    lines = (Path(__file__).parents[2] / "benchmarks" / "constraints.txt").read_text().splitlines()
    names = [line.partition("==")[0] for line in lines]
    assert {"pydantic-evals==2.62.0", "inspect_ai==0.3.285"} <= set(lines)
    assert all("==" in line for line in lines)
    assert len(set(names)) == len(names)
