from __future__ import annotations

import json

import pytest

from seatrial.errors import StorageError
from seatrial.report.files import check_writable, json_text, write_json, write_results


def test_results_are_written_whole_and_readable(tmp_path):
    path = write_results(tmp_path / "run", {"version": 1, "text": "é \ud835"})
    assert path.name == "results.json"
    assert json.loads(path.read_bytes()) == {"version": 1, "text": "é \ud835"}
    assert [file.name for file in path.parent.iterdir()] == ["results.json"]


def test_json_files_are_indented_and_end_in_a_line_feed():
    assert json_text({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}\n'


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"out\.json: cannot be written"):
        write_json(tmp_path / "file" / "out.json", {})


def test_a_bad_path_shows_before_anything_is_written(tmp_path):
    (tmp_path / "file").write_text("x")
    check_writable(tmp_path / "new" / "deep" / "out.json")
    with pytest.raises(StorageError, match="name a file"):
        check_writable(tmp_path)
    with pytest.raises(StorageError, match="is no folder"):
        check_writable(tmp_path / "file" / "out.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
