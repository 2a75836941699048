"""Cassettes on disk: read back equal, whole or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.cassette import Exchange, RecordedRequest, RecordedResponse
from seatrial.core.ids import file_name
from seatrial.errors import StorageError
from seatrial.store.cassettes import CassetteFolder, read_seed, write_seed

REQUEST = RecordedRequest(upstream="u", method="POST", path="/chat", body={"messages": ["grüße"]})
TAKE = (
    Exchange(request=REQUEST, response=RecordedResponse(status=200, events=({"data": {"a": 1}}, {"data": "x"}))),
    Exchange(request=REQUEST),
)


def test_what_was_written_is_read_back_equal_from_a_file_a_case(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "good@1", "sha256:a")
    folder.write("Case/one[a=1]", 2, "agent", 0, TAKE)
    folder.write("case/one[a=1]", 1, "graders", 0, TAKE[:1])
    assert folder.read("Case/one[a=1]").of(2).agent == (TAKE,)
    assert folder.read("case/one[a=1]").of(1).graders == (TAKE[:1],)
    home = tmp_path / file_name("good@1")
    assert {path.name for path in home.iterdir()} == {
        f"{file_name(name)}.json" for name in ("Case/one[a=1]", "case/one[a=1]")
    }
    text = folder.path("Case/one[a=1]").read_text("utf-8")
    assert "grüße" in text
    assert text.endswith("}\n")


def test_a_file_that_was_replaced_is_read_anew_whoever_replaced_it(tmp_path: Path) -> None:
    reader, writer = (CassetteFolder(tmp_path, "dev", "a") for _ in range(2))
    for trial in (1, 2, 3):
        for number in range(20):
            writer.write(f"c{number}", trial, "agent", 0, TAKE)
            assert [found.trial for found in reader.read(f"c{number}").trials] == list(range(1, trial + 1))
    reader.path("c0").unlink()
    assert reader.read("c0").trials == ()


def test_another_spec_of_the_agent_starts_afresh(tmp_path: Path) -> None:
    CassetteFolder(tmp_path, "dev", "sha256:a").write("c", 1, "agent", 0, TAKE)
    other = CassetteFolder(tmp_path, "dev", "sha256:b")
    assert "other settings of the agent" in other.why_none("c", 1, "agent", 1)
    other.write("c", 2, "agent", 0, TAKE)
    assert [found.trial for found in other.read("c").trials] == [2]


DEEP: Any = "x"
for _ in range(220):
    DEEP = [DEEP]


@pytest.mark.parametrize("body", [{"t": "\ud800"}, {"\udfff": ["\ud83d"]}, {"n": 10**400}, DEEP, {"$text": "\ud800"}])
def test_whatever_json_can_hold_is_read_back_equal(tmp_path: Path, body: Any) -> None:
    response = RecordedResponse(status=200, body=body)
    take = (Exchange(request=REQUEST.model_copy(update={"body": body}), response=response),)
    CassetteFolder(tmp_path, "dev", "a").write("c", 1, "agent", 0, take)
    assert CassetteFolder(tmp_path, "dev", "a").read("c").of(1).agent == (take,)


def test_what_is_wrong_in_a_file_with_lone_surrogates_is_named(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "dev", "a")
    folder.write("c", 1, "agent", 0, (Exchange(request=REQUEST.model_copy(update={"body": "\ud800"})),))
    folder.path("c").write_text(folder.path("c").read_text("utf-8").replace('"POST"', "5"))
    with pytest.raises(StorageError, match=r"is no whole cassette \(trials\.0\.agent\.0\.0\.request\.method: "):
        folder.read("c")


@pytest.mark.parametrize("cut", [1, 10, 100, 300])
def test_a_torn_file_is_an_error_that_names_it(tmp_path: Path, cut: int) -> None:
    folder = CassetteFolder(tmp_path, "dev", "a")
    folder.write("c", 1, "agent", 0, TAKE)
    path = folder.path("c")
    path.write_bytes(path.read_bytes()[: -cut - 1])
    with pytest.raises(StorageError, match=r"c\.json: is no whole cassette"):
        folder.read("c")


def test_a_file_of_something_else_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "dev", "a")
    folder.write("c", 1, "agent", 0, TAKE)
    data = json.loads(folder.path("c").read_text("utf-8"))
    data["trials"][0]["agent"][0][0]["request"]["metod"] = "POST"
    folder.path("c").write_text(json.dumps(data))
    with pytest.raises(StorageError, match=r"c\.json: is no whole cassette \(trials\.0\.agent\.0\.0\.request\.metod: "):
        folder.read("c")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda trial: trial["agent"][0][0]["response"].update(status=99999), "response.status"),
        (lambda trial: trial["agent"][0][0]["response"].update(status=-5), "response.status"),
        (lambda trial: trial["agent"][0][0]["response"].update(status=100), "response.status"),
        (lambda trial: trial["agent"][0][0]["response"].update(headers={"retry-after": "1\r\nX: y"}), "line ends"),
        (lambda trial: trial["agent"][0][0]["response"].update(headers={"retry-after": "\u4e2d"}), "control"),
        (lambda trial: trial["agent"][0][0]["response"].update(headers={"a b": "1"}), "no name of a header"),
        (lambda trial: trial["agent"][0][0]["response"].update(events=[{}]), "an event holds"),
        (lambda trial: trial["agent"][0][0]["response"].update(events=[{"event": "a\nb"}]), "one line"),
        (lambda trial: trial["agent"][0][0]["response"].update(events=[{"text": 5}]), "is text"),
        (lambda trial: trial.update(trial=0), "trials.0.trial"),
    ],
)
def test_an_edited_answer_that_nobody_could_send_is_an_error(tmp_path: Path, edit: Any, said: str) -> None:
    folder = CassetteFolder(tmp_path, "dev", "a")
    folder.write("c", 1, "agent", 0, TAKE)
    data = json.loads(folder.path("c").read_text("utf-8"))
    edit(data["trials"][0])
    folder.path("c").write_text(json.dumps(data))
    with pytest.raises(StorageError, match=rf"c\.json: is no whole cassette .*{said}"):
        folder.read("c")


def test_a_trial_that_stands_in_a_file_twice_is_an_error(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path, "dev", "a")
    folder.write("c", 1, "agent", 0, TAKE)
    data = json.loads(folder.path("c").read_text("utf-8"))
    data["trials"] *= 2
    folder.path("c").write_text(json.dumps(data))
    with pytest.raises(StorageError, match=r"is no whole cassette .*trial 1 stands there twice"):
        folder.read("c")


@pytest.mark.parametrize(("build", "case_id", "what"), [("dev", "d", "case 'c'"), ("prod", "c", "build 'dev'")])
def test_a_file_in_the_place_of_another_is_an_error(tmp_path: Path, build: str, case_id: str, what: str) -> None:
    CassetteFolder(tmp_path, "dev", "a").write("c", 1, "agent", 0, TAKE)
    other = CassetteFolder(tmp_path, build, "a")
    other.path(case_id).parent.mkdir(exist_ok=True)
    other.path(case_id).write_bytes(CassetteFolder(tmp_path, "dev", "a").path("c").read_bytes())
    with pytest.raises(StorageError, match=f"is the recording of {what}, which does not belong here"):
        other.read(case_id)


def test_the_seed_is_kept_and_a_torn_file_is_an_error(tmp_path: Path) -> None:
    assert read_seed(tmp_path / "nowhere") is None
    write_seed(tmp_path, 7)
    assert read_seed(tmp_path) == 7
    (tmp_path / "cassettes.json").write_text('{"version": 1, "se')
    with pytest.raises(StorageError, match=r"cassettes\.json: cannot be read"):
        read_seed(tmp_path)


def test_why_there_is_no_recording(tmp_path: Path) -> None:
    folder = CassetteFolder(tmp_path / "tapes", "goood", "a")
    assert folder.why_none("c", 1, "agent", 1).endswith("tapes")
    CassetteFolder(tmp_path / "tapes", "good", "a").write("c", 1, "agent", 0, TAKE)
    assert folder.why_none("c", 1, "agent", 1).endswith("; did you mean 'good'?")
    good = CassetteFolder(tmp_path / "tapes", "good", "a")
    assert "no recording of case d in" in good.why_none("d", 1, "agent", 1)
    assert good.why_none("c", 3, "agent", 1) == "there is no recording of trial 3; recorded trials: 1"
    assert good.why_none("c", 1, "agent", 2) == "there is no recording of attempt 2; recorded attempts: 1"
    assert good.why_none("c", 1, "graders", 1) == "graders asked no model when it was recorded"


def test_lone_surrogates_are_read_as_they_were_recorded(tmp_path: Path) -> None:
    odd = {"\ud800": 1, "in": [{"\udfff": "\ud801"}]}
    request = REQUEST.model_copy(update={"body": odd, "path": "/chat?\udc80"})
    take = (Exchange(request=request, response=RecordedResponse(status=200, body=odd)),)
    CassetteFolder(tmp_path, "dev", "a").write("c", 1, "agent", 0, take)
    assert CassetteFolder(tmp_path, "dev", "a").read("c").of(1).agent == (take,)
