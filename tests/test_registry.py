"""Import paths and registered names: found, or refused with one clear message."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import UsageError, did_you_mean, nearest
from seatrial.registry import Registry, load_object


def test_an_import_path_gives_the_object() -> None:
    assert load_object("pathlib:Path") is Path
    assert load_object("pathlib:Path.home") == Path.home


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("pathlib", "not an import path; write module:object"),
        ("pathlib:", "not an import path"),
        ("no_such_module_x:f", "there is no module named 'no_such_module_x'"),
        ("pathlib.nothing:f", "there is no module named 'pathlib.nothing'"),
        ("pathlib:Pth", "pathlib has no 'Pth'; did you mean 'Path'?"),
    ],
)
def test_a_wrong_import_path_says_what_is_wrong(path: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        load_object(path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise ValueError('no key')", r"raised ValueError: no key \(.*broken_module.py:1\)"),
        ("import package_that_is_not_there", "importing it needs 'package_that_is_not_there', which is not installed"),
        ("def f(:", "raised SyntaxError"),
        ("raise SystemExit(3)", "raised SystemExit: 3"),
    ],
)
def test_a_module_that_raises_while_it_loads_is_named_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    (tmp_path / "broken_module.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=message):
        load_object("broken_module:f")


def test_a_registered_name_loads_and_an_unknown_one_names_the_nearest() -> None:
    registry = Registry("thing", {"path": "pathlib:Path"})
    assert registry.load("path") is Path
    with pytest.raises(UsageError, match="unknown thing 'pth'; did you mean 'path'"):
        registry.load("pth")


def test_nearest_ignores_case_and_gives_none_when_nothing_is_close() -> None:
    assert nearest("Requierd_Tools", ["required_tools", "outcome"]) == "required_tools"
    assert nearest("zzz", ["required_tools"]) is None
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
    assert did_you_mean("zzz", []) == ""
