"""A trial's own database: copied from a template, usable from any thread, gone afterwards."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seatrial.environment.database import build_database, template
from seatrial.environment.failure import FixtureError, TrialOver

SCHEMA = "CREATE TABLE t(n INTEGER, s TEXT); INSERT INTO t VALUES (1, 'é');"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "t.sql"
    path.write_text("\ufeff" + SCHEMA, encoding="utf-8")
    return path


def rows(path: str | Path) -> list[Any]:
    handle = sqlite3.connect(path)
    try:
        return handle.execute("SELECT n, s FROM t ORDER BY n").fetchall()
    finally:
        handle.close()


def test_a_script_becomes_a_database_that_is_a_path(make_trial: Any, script: Path) -> None:
    trial = make_trial(database={"sqlite": script.name})
    assert rows(os.fspath(trial.database)) == [(1, "é")]
    assert str(trial.database) == os.fspath(trial.database)


def test_rows_read_like_a_cursor_and_like_a_list(make_trial: Any, script: Path) -> None:
    database = make_trial(database={"sqlite": script.name}).database
    found = database.execute("SELECT n, s FROM t WHERE n = ?", (1,))
    assert found == [(1, "é")]
    assert found.columns == ("n", "s")
    assert (found.fetchone(), found.fetchone(), found.fetchall()) == ((1, "é"), None, [])
    inserted = database.execute("INSERT INTO t VALUES (:n, :s)", {"n": 2, "s": "x"})
    assert (inserted, inserted.rowcount, inserted.lastrowid) == ([], 1, 2)
    assert database.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_statements_are_committed_at_once(make_trial: Any, script: Path) -> None:
    database = make_trial(database={"sqlite": script.name}).database
    database.execute("INSERT INTO t VALUES (2, 'x')")
    database.executescript("INSERT INTO t VALUES (3, 'y'); INSERT INTO t VALUES (4, 'z');")
    assert [n for n, _ in rows(database)] == [1, 2, 3, 4]


def test_it_may_be_used_from_any_thread(make_trial: Any, script: Path) -> None:
    database = make_trial(database={"sqlite": script.name}).database
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: database.execute("INSERT INTO t VALUES (?, 'x')", (n,)), range(2, 50)))
        handle = pool.submit(database.connect).result()
    assert len(handle.execute("SELECT * FROM t").fetchall()) == 49


def test_handles_are_closed_and_the_database_gone_after_the_trial(make_trial: Any, script: Path) -> None:
    trial = make_trial(database={"sqlite": script.name})
    handle, path, database = trial.database.connect(), trial.database.path, trial.database
    database.execute("SELECT 1")
    trial.clean_up()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        handle.execute("SELECT 1")
    assert not path.exists()
    for use in (database.connect, lambda: database.execute("SELECT 1"), lambda: os.fspath(database)):
        with pytest.raises(TrialOver):
            use()


def test_a_trial_may_fill_a_database_that_no_fixture_declares(make_trial: Any, script: Path) -> None:
    trial = make_trial()
    trial.database.executescript(SCHEMA)
    assert rows(trial.database) == [(1, "é")]
    trial.database = script
    assert rows(trial.database) == [(1, "é")]


def test_the_template_is_built_once_per_content(scratch: Path, script: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        built = set(pool.map(lambda _: template(script, scratch), range(16)))
    assert len(built) == 1
    assert [path.name for path in scratch.iterdir()] == [next(iter(built)).name]
    script.write_text(SCHEMA + "INSERT INTO t VALUES (2, 'new');", encoding="utf-8")
    changed = template(script, scratch)
    assert changed not in built
    assert len(rows(changed)) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_processes_that_need_a_template_at_once_all_get_it(scratch: Path, script: Path) -> None:
    context = multiprocessing.get_context("fork")
    together = context.Barrier(4, timeout=20)

    def build() -> None:
        for number in range(20):
            together.wait()
            assert rows(template(script, scratch, f"sha256:{number}")) == [(1, "é")]

    processes = [context.Process(target=build) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert {path.suffix for path in scratch.iterdir()} == {".db"}


def test_a_known_digest_saves_reading_the_file(scratch: Path, script: Path) -> None:
    built = template(script, scratch, "sha256:1")
    script.unlink()
    assert template(script, scratch, "sha256:1") == built


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_file_is_taken_with_what_its_log_holds(scratch: Path, tmp_path: Path, journal: str) -> None:
    live = tmp_path / "live.db"
    handle = sqlite3.connect(live)
    handle.execute(f"PRAGMA journal_mode={journal}")
    handle.executescript(SCHEMA)
    handle.execute("INSERT INTO t VALUES (2, 'committed')")
    handle.commit()
    before = sorted(path.name for path in tmp_path.iterdir())
    built = template(live, scratch)
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "the source is left as it was"
    assert rows(built) == [(1, "é"), (2, "committed")]
    assert [path.name for path in scratch.iterdir()] == [built.name]
    handle.close()


def test_an_interrupted_transaction_of_the_source_is_rolled_back(scratch: Path, tmp_path: Path) -> None:
    live, crashed = tmp_path / "live.db", tmp_path / "crashed.db"
    handle = sqlite3.connect(live, isolation_level=None)
    handle.executescript(SCHEMA)
    handle.execute("PRAGMA cache_size=1")
    handle.execute("BEGIN")
    handle.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 500) for n in range(2, 300)])
    shutil.copyfile(live, crashed)
    shutil.copyfile(f"{live}-journal", f"{crashed}-journal")
    handle.close()
    assert rows(template(crashed, scratch)) == [(1, "é")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.sql", b"CREATE TABEL t(n);", "database bad.sql: near"),
        ("bad.db", b"this is no database at all" * 20, "database bad.db: file is not a database"),
        ("latin.sql", "-- caf\xe9".encode("latin-1"), "database latin.sql: 'utf-8' codec"),
    ],
)
def test_a_source_that_is_no_database_makes_the_trial_invalid(
    make_trial: Any, tmp_path: Path, scratch: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    trial = make_trial(database={"sqlite": name}, set_up=False)
    with pytest.raises(FixtureError, match=message):
        trial.set_up()
    trial.clean_up()
    assert list(scratch.iterdir()) == []


def test_a_missing_source_is_named(make_trial: Any) -> None:
    with pytest.raises(FixtureError, match=r"database nothing\.sql: No such file"):
        make_trial(database={"sqlite": "nothing.sql"})


def test_a_failed_build_leaves_the_old_file(tmp_path: Path, script: Path) -> None:
    target = tmp_path / "target.db"
    build_database(script, target)
    script.write_text("nonsense", encoding="utf-8")
    with pytest.raises(FixtureError):
        build_database(script, target)
    assert rows(target) == [(1, "é")]
