"""What a run may be asked, whoever asks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seatrial as api
from projects import case, write_project
from seatrial.errors import UsageError
from seatrial.harness.functions import Harness
from seatrial.harness.request import Request

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": -3}, "trials should be a whole number of 1 or more, not -3"),
        ({"trials": 0}, "trials should be a whole number of 1 or more, not 0"),
        ({"trials": "3"}, "trials should be a whole number of 1 or more, not '3'"),
        ({"trials": 2.5}, "trials should be a whole number of 1 or more, not 2.5"),
        ({"trials": True}, "trials should be a whole number of 1 or more, not True"),
        ({"concurrency": -1}, "concurrency should be a whole number of 1 or more, not -1"),
        ({"concurrency": 0}, "concurrency should be a whole number of 1 or more, not 0"),
        ({"timeout_s": -1}, "timeout_s should be a number above 0, not -1"),
        ({"timeout_s": 0}, "timeout_s should be a number above 0, not 0"),
        ({"timeout_s": NAN}, "timeout_s should be a number above 0, not nan"),
        ({"timeout_s": INFINITE}, "timeout_s should be a number above 0, not inf"),
        ({"timeout_s": 10**400}, "timeout_s should be a number above 0, not 1000000000"),
        ({"max_cost": NAN}, "max_cost should be a number above 0, not nan"),
        ({"max_time": "1h"}, "max_time should be a number above 0, not '1h'"),
        ({"seed": "x"}, "seed should be a whole number, not 'x'"),
        ({"tools": "bar"}, "tools should be stand_in or real, not 'bar'"),
        ({"isolation": "fork"}, "isolation should be thread or process, not 'fork'"),
        ({"cassette_mode": []}, "cassette_mode should be off, record or replay, not []"),
        ({"risk": "hgh"}, "risk should be low, medium, high or critical, not ('hgh',)"),
        ({"suite": 5}, "suite should be text or a list of it, not 5"),
        ({"tag": ["a", 5]}, "tag should be text or a list of it, not ('a', 5)"),
        ({"build": 5}, "build should be text, not 5"),
        ({"output": 5}, "output should be a path, not 5"),
        ({"resume": "yes"}, "resume should be true or false, not 'yes'"),
        ({"keyword": "x" * 500}, None),
        ({"command": ("x",)}, "run() has no option 'command'"),
    ],
)
def test_an_option_that_is_not_what_it_may_be_is_refused_before_anything_is_read(
    tmp_path: Path, options: dict[str, Any], message: str | None
) -> None:
    if message is None:
        assert Request(**options).keyword == options["keyword"]
        return
    with pytest.raises(UsageError, match=re.escape(message)):
        api.run(tmp_path / "nowhere", **options)


@pytest.mark.parametrize(("project", "select"), [(5, ()), (".", 5), (".", [5])])
def test_what_is_no_project_or_selection_is_refused(project: Any, select: Any) -> None:
    with pytest.raises(UsageError, match=r"(project|select) should be"):
        api.run(project, select)


@given(st.integers(1, 10**30), st.floats(min_value=0, exclude_min=True, allow_infinity=False), st.integers())
def test_every_number_in_range_is_taken_as_it_is(count: int, amount: float, seed: int) -> None:
    request = Request(trials=count, concurrency=count, timeout_s=amount, max_cost=amount, max_time=amount, seed=seed)
    assert (request.trials, request.concurrency, request.timeout_s, request.seed) == (count, count, amount, seed)


def test_a_harness_is_held_to_the_same() -> None:
    with pytest.raises(UsageError, match="concurrency should be a whole number of 1 or more, not 0"):
        Harness(str.upper, concurrency=0)
    with pytest.raises(UsageError, match="timeout_s should be a number above 0, not nan"):
        Harness(str.upper, timeout_s=NAN)


def test_no_more_runs_at_once_than_there_are_trials(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/a.yaml": case("a")})
    assert api.run(tmp_path, concurrency=10**9).exit_code == 0
