"""What trials leave behind in what they share is found, named, and laid to the trials that may have done it."""

from __future__ import annotations

import io
import math
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.core.trial import Leftover
from seatrial.environment.surroundings import Surroundings


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    for name in ("SEATRIAL_LEFT", "SEATRIAL_OTHER"):
        monkeypatch.setenv(name, "x")  # so that it is taken back in the end
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Surroundings({"the project's folder": tmp_path}, pause_s=0)


@pytest.fixture
def threads() -> Iterator[list[threading.Thread]]:
    """Threads that wait for the end of the test."""
    over = threading.Event()
    made = [threading.Thread(target=over.wait, daemon=number > 0) for number in range(3)]
    yield made
    over.set()
    for thread in made:
        if thread.ident is not None:
            thread.join()


def texts(leftovers: tuple[Leftover, ...]) -> list[str]:
    return [leftover.what for leftover in leftovers]


def test_a_trial_that_leaves_nothing_has_no_leftovers(world: Surroundings) -> None:
    world.begin("a#1")
    assert world.end("a#1") == ()


def test_a_stream_that_was_replaced_is_told_once(world: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    world.begin("a#1")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert world.end("a#1") == (Leftover(kind="stream", what="sys.stdout was replaced"),)
    world.begin("b#1")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert texts(world.end("b#1")) == ["sys.stderr was replaced"]
    world.begin("c#1")
    assert world.end("c#1") == ()


def test_variables_are_named_without_their_values(world: Surroundings) -> None:
    world.begin("a#1")
    os.environ["SEATRIAL_LEFT"] = "hunter2"
    (leftover,) = world.end("a#1")
    assert leftover == Leftover(kind="environment", what="the environment variable SEATRIAL_LEFT was set")
    world.begin("b#1")
    os.environ["SEATRIAL_LEFT"] = "hunter3"
    assert texts(world.end("b#1")) == ["the environment variable SEATRIAL_LEFT was changed"]
    world.begin("c#1")
    del os.environ["SEATRIAL_LEFT"]
    assert texts(world.end("c#1")) == ["the environment variable SEATRIAL_LEFT was removed"]
    world.begin("d#1")
    assert world.end("d#1") == ()


def test_what_a_trial_takes_back_is_no_leftover(world: Surroundings, tmp_path: Path) -> None:
    world.begin("a#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    (tmp_path / "notes.txt").touch()
    os.chdir("/")
    os.chdir(tmp_path)
    (tmp_path / "notes.txt").unlink()
    del os.environ["SEATRIAL_LEFT"]
    assert world.end("a#1") == ()


def test_the_working_folder_and_new_entries_are_reported(world: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "old.txt").touch()
    world.begin("a#1")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "old.txt").unlink()
    (tmp_path / "runs").mkdir()  # the harness's own
    (tmp_path / "sub").mkdir()
    os.chdir(tmp_path / "sub")
    assert texts(world.end("a#1")) == [
        "the working folder was changed",
        "notes.txt was made in the project's folder",
        "old.txt is gone from the project's folder",
        "sub was made in the project's folder",
    ]


def test_two_files_made_within_one_tick_of_the_file_system_are_both_seen(world: Surroundings, tmp_path: Path) -> None:
    for name in "abcdefgh":
        world.begin(f"{name}#1")
        (tmp_path / name).touch()
        assert texts(world.end(f"{name}#1")) == [f"{name} was made in the project's folder"]


def test_of_very_many_files_the_first_are_named(world: Surroundings, tmp_path: Path) -> None:
    world.begin("a#1")
    for number in range(100):
        (tmp_path / f"{number:03}.txt").touch()
    told = texts(world.end("a#1"))
    assert (len(told), told[0][:7], told[-1]) == (6, "000.txt", "and 95 more")


def test_threads_that_still_run_are_reported_and_the_harness_own_are_not(
    world: Surroundings, threads: list[threading.Thread]
) -> None:
    own, first, second = threads
    own.name = "seatrial-7"
    first.name, second.name = "Thread-12 (poll)", "Thread-13 (poll)"
    world.begin("a#1")
    for thread in threads:
        thread.start()
    assert texts(world.end("a#1")) == ["2 times: a daemon thread still runs: Thread-N (poll)"]
    world.begin("b#1")
    assert world.end("b#1") == ()


def test_with_company_all_who_ran_are_named_once_and_only_when_all_have_ended(world: Surroundings) -> None:
    world.begin("a#1")
    world.begin("b#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    world.begin("c#1")
    assert world.end("a#1") == ()
    assert world.end("c#1") == ()
    (leftover,) = world.end("b#1")
    assert leftover.during == ("a#1", "b#1")


def test_with_company_what_is_there_for_the_time_of_a_trial_is_no_leftover(world: Surroundings) -> None:
    world.begin("a#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    world.begin("b#1")
    assert world.end("b#1") == ()
    del os.environ["SEATRIAL_LEFT"]
    assert world.end("a#1") == ()


def test_what_changes_while_no_trial_runs_is_nobodys(world: Surroundings) -> None:
    world.begin("a#1")
    world.end("a#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    world.begin("b#1")
    os.environ["SEATRIAL_OTHER"] = "x"
    assert texts(world.end("b#1")) == ["the environment variable SEATRIAL_OTHER was set"]


def test_changed_files_of_a_fixture_are_reported_once(world: Surroundings) -> None:
    changed = [("fixture", "terms.txt of the fixture shop was changed")]
    world.begin("a#1")
    (leftover,) = world.end("a#1", changed)
    assert leftover.kind == "fixture"
    world.begin("b#1")
    assert world.end("b#1", changed) == ()


def test_in_another_process_it_starts_afresh(world: Surroundings) -> None:
    world.begin("a#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    copy = pickle.loads(pickle.dumps(world))
    copy.begin("b#1")
    assert copy.end("b#1") == ()


def test_a_folder_that_did_not_change_is_not_listed_again(
    world: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(tmp_path, (1, 1))
    world.begin("a#1")
    world.end("a#1")
    listed: list[object] = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: (listed.append(folder), real(folder))[1])
    for number in range(100):
        world.begin(f"a#{number}")
        world.end(f"a#{number}")
    assert listed == []


def test_where_several_run_at_once_one_look_serves_all_that_ended_since(world: Surroundings, tmp_path: Path) -> None:
    together = Surroundings({"the project's folder": tmp_path}, expected=3, pause_s=math.inf)
    together.begin("a#1")
    (tmp_path / "left.txt").write_text("x")
    assert together.end("a#1") == ()
    together.begin("b#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    assert together.end("b#1") == ()
    together.begin("c#1")
    left = together.end("c#1")
    assert sorted(texts(left)) == [
        "left.txt was made in the project's folder",
        "the environment variable SEATRIAL_LEFT was set",
    ]
    assert {leftover.during for leftover in left} == {("a#1", "b#1", "c#1")}


def test_the_last_that_begins_is_looked_at_and_all_after_it(world: Surroundings) -> None:
    together = Surroundings(expected=2, pause_s=math.inf)
    together.begin("a#1")
    together.begin("b#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    assert together.end("b#1") == ()  # held back: another one runs
    (leftover,) = together.end("a#1")
    assert leftover.during == ("a#1", "b#1")
    together.begin("a#1")  # once more
    os.environ["SEATRIAL_OTHER"] = "x"
    assert texts(together.end("a#1")) == ["the environment variable SEATRIAL_OTHER was set"]


def test_what_is_taken_back_before_the_next_look_is_no_leftover(world: Surroundings) -> None:
    together = Surroundings(expected=2, pause_s=math.inf)
    together.begin("a#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    together.end("a#1")
    together.begin("b#1")
    del os.environ["SEATRIAL_LEFT"]
    assert together.end("b#1") == ()


def test_a_trial_that_ended_unseen_is_named_where_another_tells_of_what_it_left(world: Surroundings) -> None:
    now = 10.0
    together = Surroundings(expected=3, pause_s=1, clock=lambda: now)
    together.begin("a#1")
    together.end("a#1")  # the first look
    together.begin("b#1")
    os.environ["SEATRIAL_LEFT"] = "x"
    assert together.end("b#1") == ()  # the last look has just been
    now = 20.0
    together.begin("c#1")
    (leftover,) = together.end("c#1")
    assert leftover.during == ("b#1",)
