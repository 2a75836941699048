"""What the harness itself reads after the trial."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.environment.failure import FixtureError
from seatrial.environment.outcome import bind

SCHEMA = """
CREATE TABLE refunds(user_id TEXT, status TEXT, amount REAL);
INSERT INTO refunds VALUES ('customer-1', 'paid', 10.5), ('customer-2', 'open', 20), ('customer-2', 'paid', NULL);
"""


@pytest.fixture
def refunds(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "refunds.sql").write_text(SCHEMA, encoding="utf-8")
    return {"sqlite": "refunds.sql"}


def observed(make_trial: Any, sql: str, database: Any, *, user: Any = "customer-1", **more: Any) -> Any:
    trial = make_trial(
        database=database, case_input={"user_id": user}, outcome={"it": {"sql": sql, "default": "none", **more}}
    )
    return trial.observe()["it"]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT status FROM refunds WHERE user_id = $input.user_id", "paid"),
        ("SELECT status FROM refunds WHERE user_id = 'nobody'", "none"),
        ("SELECT amount FROM refunds WHERE amount IS NULL", None),
        ("SELECT count(*) FROM refunds", 3),
        ("SELECT status, amount FROM refunds WHERE user_id = 'customer-1'", {"status": "paid", "amount": 10.5}),
        ("SELECT status FROM refunds ORDER BY status, amount", ["open", "paid", "paid"]),
        (
            "SELECT status AS s, amount AS a FROM refunds WHERE user_id = 'customer-2' ORDER BY status",
            [{"s": "open", "a": 20.0}, {"s": "paid", "a": None}],
        ),
        ("SELECT '$input.user_id' -- $nothing.here", "$input.user_id"),
        ("SELECT $input.missing IS NULL", 1),
        ("SELECT x'00ff'", {"$type": "bytes", "value": "AP8="}),
    ],
)
def test_rows_become_the_simplest_value_that_holds_them(make_trial: Any, refunds: Any, sql: str, value: Any) -> None:
    assert observed(make_trial, sql, refunds) == value


@pytest.mark.parametrize(
    "user",
    [
        "x' OR '1'='1",
        "x'; DROP TABLE refunds; --",
        "customer-1' --",
        '" OR ""="',
        "$input.user_id",
        ":p0",
        "customer-1\0",
        {"$ne": 1},
        ["customer-1"],
    ],
)
def test_input_is_bound_and_never_part_of_the_statement(make_trial: Any, refunds: Any, user: Any) -> None:
    sql = "SELECT count(*) FROM refunds WHERE user_id = $input.user_id"
    assert observed(make_trial, sql, refunds, user=user) == 0
    assert observed(make_trial, "SELECT count(*) FROM refunds", refunds) == 3


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_comes_back_as_the_bound_value_it_is(text: str) -> None:
    statement, parameters = bind("SELECT $input.text, $state.items[0]", {"input": {"text": text}, "state": None})
    handle = sqlite3.connect(":memory:")
    try:
        assert handle.execute(statement, parameters).fetchone() == (text, None)
    finally:
        handle.close()


def test_identity_state_and_whole_inputs_are_bound_too() -> None:
    scope = {"input": "hi", "identity": {"user": "u"}, "state": {"orders": [{"id": 5}], "open": True}}
    sql = 'SELECT $input, $identity.user, $state.orders[0].id, $state.open, $state.orders, "$x", [$y], /* $z */ `$w`'
    statement, parameters = bind(sql, scope)
    assert statement == 'SELECT :p0, :p1, :p2, :p3, :p4, "$x", [$y], /* $z */ `$w`'
    assert list(parameters.values()) == ["hi", "u", 5, True, '[{"id":5}]']


def test_a_path_from_nowhere_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\$inputs\.x starts from none of \$input, \$state"):
        bind("SELECT $inputs.x", {"input": {}, "state": {}})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nothing FROM refunds",
        "SELEC 1",
        "DELETE FROM refunds",
        "SELECT 1; SELECT 2",
        "SELECT $argument.x",
        "SELECT ?",
    ],
)
def test_a_statement_that_fails_names_its_key(make_trial: Any, refunds: Any, sql: str) -> None:
    with pytest.raises(FixtureError, match="outcome it: "):
        observed(make_trial, sql, refunds)


def test_observers_see_what_was_committed_and_nothing_else(make_trial: Any, refunds: Any) -> None:
    trial = make_trial(database=refunds, outcome={"n": {"sql": "SELECT count(*) FROM refunds"}})
    trial.database.execute("INSERT INTO refunds VALUES ('a', 'b', 1)")
    committed = sqlite3.connect(trial.database)
    committed.execute("INSERT INTO refunds VALUES ('a', 'b', 1)")
    committed.commit()
    committed.close()
    trial.database.connect().execute("INSERT INTO refunds VALUES ('never', 'committed', 1)")
    assert trial.observe() == {"n": 5}


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_lock_that_the_agent_left_hides_nothing_committed(make_trial: Any, refunds: Any, journal: str) -> None:
    trial = make_trial(database=refunds, outcome={"n": {"sql": "SELECT count(*) FROM refunds"}})
    handle = sqlite3.connect(trial.database, isolation_level=None)
    handle.execute(f"PRAGMA journal_mode={journal}")
    handle.execute("INSERT INTO refunds VALUES ('a', 'b', 1)")
    handle.execute("BEGIN EXCLUSIVE")
    handle.execute("PRAGMA cache_size=1")
    handle.executemany("INSERT INTO refunds VALUES (?, 'never committed', 1)", [("x" * 500,)] * 200)
    try:
        assert trial.observe() == {"n": 4}
    finally:
        handle.close()


def test_state_files_and_functions_are_observed(make_trial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = make_trial(
        state={"order": {"id": "O-1"}},
        outcome={
            "order_id": {"state": "order.id"},
            "missing": {"state": "order.none", "default": "none"},
            "report": {"file": "out/report.txt"},
            "data": {"file": "data.json", "json": True},
            "broken": {"file": "broken.json", "json": True},
            "binary": {"file": "binary"},
            "no_file": {"file": "nothing", "default": 0},
            "cwd": {"function": "os:getpid"},
        },
    )
    (trial.workdir / "out").mkdir()
    (trial.workdir / "out" / "report.txt").write_text("fine\n", encoding="utf-8")
    (trial.workdir / "data.json").write_text('\ufeff{"n": 1}', encoding="utf-8")
    (trial.workdir / "broken.json").write_text('{"n": ', encoding="utf-8")
    (trial.workdir / "binary").write_bytes(b"\xff\x00")
    trial.state["order"]["id"] = "O-2"
    outcome = trial.observe()
    assert isinstance(outcome.pop("cwd"), int)
    assert outcome == {
        "order_id": "O-2",
        "missing": "none",
        "report": "fine\n",
        "data": {"n": 1},
        "broken": '{"n": ',
        "binary": {"$type": "bytes", "value": "/wA="},
        "no_file": 0,
    }


def test_a_file_observer_makes_no_folder(make_trial: Any, scratch: Path) -> None:
    trial = make_trial(outcome={"report": {"file": "report.txt", "default": None}})
    assert trial.observe() == {"report": None}
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("path", ["../../secret", "/etc/hostname"])
def test_a_file_observer_stays_in_the_working_folder(make_trial: Any, path: str) -> None:
    trial = make_trial(outcome={"it": {"file": path}})
    _ = trial.workdir
    with pytest.raises(FixtureError, match="leads out of the working folder"):
        trial.observe()


def test_a_fixture_without_observers_observes_nothing(make_trial: Any) -> None:
    assert make_trial().observe() is None


def test_an_outcome_may_be_one_callable_or_a_mapping_of_any(make_trial: Any) -> None:
    trial = make_trial(state={"n": 1})
    trial.outcome = lambda environment: {"n": environment.state["n"], "odd": {1, 2}}
    assert trial.observe() == {"n": 1, "odd": {"$type": "set", "value": "[1,2]"}}
    trial.outcome = {"n": {"state": "n"}, "fixed": lambda: 5}
    assert trial.observe() == {"n": 1, "fixed": 5}


async def async_observer() -> dict[str, int]:
    return {}


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (lambda: [1], "outcome: the function gave a list, not a mapping"),
        (async_observer, "outcome: TypeError: an observer is a plain function, not an async one"),
        ({"n": lambda: 1 / 0}, "outcome n: ZeroDivisionError: division by zero"),
        ({"n": {"sq": "SELECT 1"}}, "outcome n: ValidationError"),
        ({"n": {"function": "nowhere:f"}}, "outcome n: UsageError"),
    ],
)
def test_an_observer_that_raises_is_the_fixtures_failure(make_trial: Any, outcome: Any, message: str) -> None:
    trial = make_trial()
    trial.outcome = outcome
    with pytest.raises(FixtureError, match=message):
        trial.observe()
