"""Every reset starts from what the fixture said when the run was planned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.fixture import FixtureSpec
from seatrial.environment.failure import FixtureError
from seatrial.environment.sources import Sources


@pytest.fixture
def spec(tmp_path: Path) -> FixtureSpec:
    folder = tmp_path / "shop"
    (folder / "files" / "deep").mkdir(parents=True)
    (folder / "files" / "deep" / "terms.txt").write_text("30 days")
    (folder / "orders.sql").write_text("CREATE TABLE orders (id TEXT);")
    (tmp_path / "python.py").write_text("def python(environment): yield")
    return FixtureSpec(
        name="shop",
        folder=str(folder),
        database={"sqlite": "orders.sql"},
        files="files",
        function="../python.py:python",
    )


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda folder: (folder / "orders.sql").write_text("DROP"), "orders.sql"),
        (lambda folder: (folder / "files" / "deep" / "terms.txt").unlink(), "files/deep/terms.txt"),
        (lambda folder: (folder.parent / "python.py").write_text(""), "python.py"),
    ],
)
def test_a_changed_file_is_named(spec: FixtureSpec, change: Any, name: str) -> None:
    sources = Sources.of(spec)
    assert sources.changed() == []
    change(Path(spec.folder))
    assert name in sources.changed()


def test_a_file_added_to_the_files_shows_in_its_folder(spec: FixtureSpec) -> None:
    folder = Path(spec.folder, "files")
    os.utime(folder, ns=(1, 1))
    sources = Sources.of(spec)
    (folder / "new.txt").touch()
    assert sources.changed() == ["files"]


def test_a_trial_after_the_change_is_invalid_not_another_test(make_trial: Any, spec: FixtureSpec) -> None:
    sources = Sources.of(spec)
    trial = make_trial(set_up=False)
    trial._sources = sources
    trial.set_up()
    Path(spec.folder, "orders.sql").write_text("DROP")
    assert trial.sources_changed() == [("fixture", "orders.sql of the fixture  was changed")]
    later = make_trial(set_up=False)
    later._sources = sources
    with pytest.raises(FixtureError, match=r"its files have changed since the run began: orders\.sql"):
        later.set_up()


def test_a_template_that_was_written_to_is_reported_and_built_anew(
    make_trial: Any, tmp_path: Path, scratch: Path
) -> None:
    (tmp_path / "orders.sql").write_text("CREATE TABLE orders (id TEXT); INSERT INTO orders VALUES ('O-1');")
    declared = {"database": {"sqlite": "orders.sql"}, "name": "shop"}
    first = make_trial(**declared)
    assert first.sources_changed() == []
    (template,) = scratch.glob("template-*.db")
    template.write_bytes(b"")
    assert first.sources_changed() == [("database", "the template database of the fixture shop was changed")]
    second = make_trial(**declared)
    assert second.database.execute("SELECT id FROM orders") == [("O-1",)]
    assert second.sources_changed() == []
