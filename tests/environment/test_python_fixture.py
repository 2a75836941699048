"""Fixtures in Python: set up, yield, clean up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.trace import Observable
from seatrial.environment.failure import FixtureError
from seatrial.environment.python_fixture import fixture_function

ORDERS = '''
import sqlite3
from dataclasses import dataclass

LOG = []

@dataclass
class Order:
    id: str

def orders(environment):
    """An order, a tool, a fault, an approval."""
    handle = sqlite3.connect(environment.database)
    handle.executescript("CREATE TABLE orders(id TEXT); INSERT INTO orders VALUES ('O-1');")
    handle.close()
    environment.identity = {"agent": "desk", "user": environment.case.input["user"]}
    environment.state = {"open": [Order("O-1").id]}
    environment.tools["search"] = lambda query: f"found {query}"
    environment.faults.append({"tool": "search", "on_call": 2, "error": "timeout"})
    environment.approvals = [{"action": "pay", "decision": "granted", "by": "boss"}]
    environment.secrets["pin"] = "123456"
    environment.outcome = {"orders": {"sql": "SELECT count(*) FROM orders"}}
    LOG.append("set up")
    yield
    LOG.append(f"cleaned up {environment.workdir.exists()}")
'''


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(body: str, name: str = "orders") -> str:
        (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
        return f"{name}.py:{name}"

    return write


def test_a_fixture_sets_everything_up_and_cleans_up(make_trial: Any, write: Any, tmp_path: Path, scratch: Path) -> None:
    trial = make_trial(function=write(ORDERS), case_input={"user": "u-1"})
    assert trial.identity == {"agent": "desk", "user": "u-1"}
    assert trial.tools.search(query="x") == "found x"
    with pytest.raises(TimeoutError):
        trial.tools.search(query="x")
    assert trial.approve("pay").approver == "boss"
    assert dict(trial.secrets) == {"pin": "123456"}
    assert trial.observe() == {"orders": 1}
    assert trial.recorder.freeze()[0].agent == "desk"
    assert Observable.TOOL_CALLS in trial.recorder.observes
    trial.clean_up()
    log = fixture_function("orders.py:orders", str(tmp_path)).__globals__["LOG"]
    assert log == ["set up", "cleaned up True"]
    assert list(scratch.iterdir()) == []


def test_the_file_runs_once_and_its_function_once_a_trial(make_trial: Any, write: Any, tmp_path: Path) -> None:
    location = write(
        "RUNS = []\ndef counted(environment):\n    RUNS.append(1)\n    yield\n    RUNS.append(2)\n", "counted"
    )
    for _ in range(3):
        make_trial(function=location).clean_up()
    assert fixture_function(location, str(tmp_path)).__globals__["RUNS"] == [1, 2] * 3


def test_a_changed_file_is_read_again(write: Any, tmp_path: Path) -> None:
    location = write("def f(environment):\n    return 1\n", "f")
    assert fixture_function(location, str(tmp_path))(None) == 1
    write("def f(environment):\n    return 'changed'\n", "f")
    os.utime(tmp_path / "f.py", ns=(1, 1))
    assert fixture_function(location, str(tmp_path))(None) == "changed"


def test_an_absolute_location_needs_no_folder(write: Any, tmp_path: Path) -> None:
    write("def f(environment):\n    yield\n", "f")
    assert fixture_function(f"{tmp_path}/f.py:f").__name__ == "f"


def test_a_function_without_yield_has_no_cleaning_up(make_trial: Any, write: Any) -> None:
    trial = make_trial(function=write("def orders(environment):\n    environment.state = 5\n"))
    assert trial.state == 5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "def orders(environment):\n    raise ConnectionError('no server')\n    yield\n",
            "fixture orders: ConnectionError: no server",
        ),
        ("def orders(environment):\n    raise SystemExit(3)\n    yield\n", "fixture orders: SystemExit: 3"),
        ("def orders(environment):\n    return\n    yield\n", "fixture orders: it ended without `yield`"),
        ("async def orders(environment):\n    yield\n", "a plain generator function, not an async one"),
        ("def orders():\n    yield\n", "fixture orders: TypeError"),
        ("def order(environment):\n    yield\n", "it has no function 'orders'; did you mean 'order'"),
        ("import nothing_of_that_name\n", "fixture orders.py: ModuleNotFoundError"),
        ("def orders(:\n", "fixture orders.py: SyntaxError"),
        (
            "def orders(environment):\n    environment.faults = [{'tool': 'x'}]\n    yield\n",
            "fixture: ValidationError",
        ),
        (
            "def orders(environment):\n    environment.tools['x'] = 5\n    yield\n",
            "stand-in x must be a function or a list of rules",
        ),
    ],
)
def test_a_fixture_that_fails_before_its_yield_makes_the_trial_invalid(
    make_trial: Any, write: Any, scratch: Path, body: str, message: str
) -> None:
    trial = make_trial(function=write(body), set_up=False)
    with pytest.raises(FixtureError, match=message):
        trial.set_up()
    trial.clean_up()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("raise OSError('stuck')", "fixture orders, after its yield: OSError: stuck"),
        ("yield", "fixture orders, after its yield: it yielded a second time"),
    ],
)
def test_a_clean_up_that_fails_is_reported_and_the_folder_removed_all_the_same(
    make_trial: Any, write: Any, scratch: Path, end: str, message: str
) -> None:
    trial = make_trial(function=write(f"def orders(environment):\n    environment.workdir\n    yield\n    {end}\n"))
    with pytest.raises(FixtureError, match=message):
        trial.clean_up()
    assert list(scratch.iterdir()) == []
    trial.clean_up()


def test_even_a_clean_up_that_raises_an_interrupt_removes_the_folder(
    make_trial: Any, write: Any, scratch: Path
) -> None:
    body = "def orders(environment):\n    environment.workdir\n    yield\n    raise KeyboardInterrupt\n"
    trial = make_trial(function=write(body))
    with pytest.raises(FixtureError, match="after its yield: KeyboardInterrupt"):
        trial.clean_up()
    assert list(scratch.iterdir()) == []
