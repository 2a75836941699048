"""What trials could share is seen, and told as what changed in it."""

from __future__ import annotations

import os
import random
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.proving.census import Census, census, changes
from seatrial.verdict.isolation import Change


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Any]:
    made: Any = types.ModuleType("shop_module")
    made.__file__ = str(tmp_path / "shop_module.py")
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]


def told(before: Census, root: Path) -> list[Change]:
    return [change for change in changes(before, census(root)) if "PYTEST" not in change.what]


def test_globals_of_the_projects_modules_are_seen_under_their_own_name(module: Any, tmp_path: Path) -> None:
    module.SEEN, module.LIMIT, module.os = {"a": 1}, 3, os
    other: Any = types.ModuleType("shop_other")
    other.__file__, other.SEEN = str(tmp_path / "shop_other.py"), module.SEEN
    sys.modules["shop_other"] = other
    before = census(tmp_path)
    module.SEEN["b"], module.LIMIT = 2, 4
    found = told(before, tmp_path)
    del sys.modules["shop_other"]
    assert [(change.kind, change.how) for change in found] == [("global", "3 -> 4"), ("global", "b: + 2")]


def test_installed_packages_and_seatrial_are_not_the_project(tmp_path: Path) -> None:
    names = {name.partition(":")[0].partition(".")[0] for kind, name in census(tmp_path) if kind == "global"}
    assert names & {"seatrial", "pytest", "pydantic", "os", "json"} == set()


def test_files_variables_threads_chance_and_the_working_folder_are_seen(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    before = census(tmp_path)
    state, over = random.getstate(), threading.Event()
    thread = threading.Thread(target=over.wait, name="poller")
    thread.start()
    random.random()
    monkeypatch.setenv("SHOP_MODE", "hunter2")
    (tmp_path / "deep" / "er" / "cache.json").touch()
    (tmp_path / "runs" / "log").touch()
    monkeypatch.chdir("deep")
    found = told(before, tmp_path)
    over.set()
    thread.join()
    random.setstate(state)
    assert [(change.kind, change.what) for change in found] == [
        ("chance", "the generator of the module random"),
        ("environment", "SHOP_MODE"),
        ("cwd", "the working folder"),
        ("file", "deep/er/cache.json"),
        ("thread", "poller"),
    ]
    assert "hunter2" not in str(found)


def test_a_module_imported_meanwhile_is_told_without_its_globals(tmp_path: Path) -> None:
    before = census(tmp_path)
    late: Any = types.ModuleType("shop_late")
    late.__file__, late.CACHE = str(tmp_path / "shop_late.py"), {}
    sys.modules["shop_late"] = late
    found = told(before, tmp_path)
    del sys.modules["shop_late"]
    assert found == [Change("module", "shop_late", "imported")]
