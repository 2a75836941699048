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


def test_what_has_to_come_first_keeps_a_summary_from_its_place(tmp_path):
    seen = []
    write_results(tmp_path, {"version": 1}, once=lambda: seen.append([path.name for path in tmp_path.iterdir()]))
    assert len(seen) == 1
    assert "results.json" not in seen[0]

    def refuse():
        raise StorageError("the trials could not be put on the disk")

    with pytest.raises(StorageError, match="put on the disk"):
        write_results(tmp_path, {"version": 2}, once=refuse)
    assert json.loads((tmp_path / "results.json").read_bytes()) == {"version": 1}
    assert len(list(tmp_path.iterdir())) == 1


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
