"""A run folder may be damaged, or made to mislead: each fault is one error that names file and place, and nothing
outside the folder is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.case import Case
from seatrial.core.run import RunInfo
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.errors import StorageError
from seatrial.store.frames import TRACES, Packer
from seatrial.store.journal import FIRST_LINK, TRIALS
from seatrial.store.rundir import RunFolder, RunWriter, bytes_digest, line_digest
from seatrial.store.verifying import verify

LARGE = "answer " * 20_000
SECRET = "root:x:0:0"
DEEP = b"[" * 200_000


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A finished run of one trial of `c`, whose output was put aside, and one of `d`."""
    (tmp_path / "secret.txt").write_text(SECRET)
    info = RunInfo(run_id="r", cases={"c": "", "d": ""})
    writer = RunWriter.create(tmp_path / "run", info, [Case(id="c"), Case(id="d")])
    for case_id, output in (("c", LARGE), ("d", "short")):
        trace = Trace(output=output, outputs=(output,))
        record = TrialRecord(
            case_id=case_id, status=TrialStatus.UNGRADED, stop_reason=trace.stop_reason, output=trace.output
        )
        writer.write(record, trace)
    writer.finish(writer.info)
    return RunFolder(tmp_path / "run")


def change_records(run: RunFolder, *changes: dict[str, Any]) -> None:
    """Change the records in order, and link them anew, as a forger would."""
    lines, link = (run.folder / TRIALS).read_bytes().splitlines(), FIRST_LINK
    for number, change in enumerate([*changes, *({},) * len(lines)][: len(lines)]):
        lines[number] = json.dumps(json.loads(lines[number]) | change | {"previous": link}).encode()
        link = line_digest(lines[number])
    (run.folder / TRIALS).write_bytes(b"".join(line + b"\n" for line in lines))
    info = json.loads((run.folder / "run.json").read_text()) | {"chain_end": link}
    (run.folder / "run.json").write_text(json.dumps(info))


def give_trace(run: RunFolder, line: bytes, **more: Any) -> None:
    """Put this in place of the first trial's trace, with its digest on record."""
    frame, path = Packer()(line), run.folder / TRACES
    at = path.stat().st_size
    path.write_bytes(path.read_bytes() + frame)
    change_records(run, {"trace_at": at, "trace_size": len(frame), "trace_digest": bytes_digest(frame), **more})


def trace_of(run: RunFolder) -> Trace:
    return run.trace(run.records()[0])


def of_c(**more: Any) -> bytes:
    return json.dumps({"case_id": "c", "trial_index": 1, "attempt": 1, **more}).encode()


OUTSIDE = (
    "../secret.txt",
    "outputs/../../secret.txt",
    "outputs\\..\\..\\secret.txt",
    "outputs",
    "",
    "run.json",
    "a\0b",
)


# --- names that lead elsewhere ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OUTSIDE, "ABSOLUTE"])
def test_no_record_can_name_a_file_that_is_no_output_of_the_run(name: str, run: RunFolder, tmp_path: Path) -> None:
    name = str(tmp_path / "secret.txt") if name == "ABSOLUTE" else name
    change_records(run, {"output_file": name})
    with pytest.raises(StorageError, match="is no name of an output"):
        run.output(run.records()[0])
    problems = "\n".join(verify(run).problems)
    assert "trials.jsonl:1: the output of c#1: " in problems
    assert "is no name of an output" in problems


@pytest.mark.parametrize("name", [*OUTSIDE, "ABSOLUTE"])
def test_no_trace_can_refer_to_a_file_that_is_no_output_of_the_run(name: str, run: RunFolder, tmp_path: Path) -> None:
    name = str(tmp_path / "secret.txt") if name == "ABSOLUTE" else name
    give_trace(run, of_c(output_file={"file": name, "digest": bytes_digest(SECRET.encode())}), output_file=name)
    with pytest.raises(StorageError, match="is no name of an output"):
        trace_of(run)
    assert verify(run).problems


@pytest.mark.parametrize("whole_folder", [False, True])
def test_links_out_of_the_folder_are_not_followed(whole_folder: bool, run: RunFolder, tmp_path: Path) -> None:
    outputs = run.folder / "outputs"
    outputs.rename(tmp_path / "elsewhere")
    target = tmp_path / "elsewhere"
    if whole_folder:
        outputs.symlink_to(target, target_is_directory=True)
    else:
        outputs.mkdir()
        (outputs / "c%231.1.txt").symlink_to(target / "c%231.1.txt")
    for read in (lambda: run.output(run.records()[0]), lambda: trace_of(run)):
        with pytest.raises(StorageError, match="is a link out of the run folder's outputs"):
            read()
    assert "is a link out of" in "\n".join(verify(run).problems)


def test_an_output_of_which_the_trace_says_nothing_is_not_taken_for_the_trials(run: RunFolder) -> None:
    give_trace(run, of_c())
    assert "the output of c#1 is not as the run wrote it" in "\n".join(verify(run).problems)


def test_a_trace_with_events_of_no_kind_is_none_for_verifying_too(run: RunFolder) -> None:
    for events in ("x", [1], [{"number": 1}], [{"number": 1, "kind": "zzz"}], [{"kind": []}]):
        give_trace(run, of_c(output=LARGE, events=events))
        assert "trials.jsonl:1: the trace of c#1 is no trace" in "\n".join(verify(run).problems)


# --- what is no file, or cannot be read ------------------------------------------------------------------------------


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("instead", [_pipe, _folder, _loop])
@pytest.mark.parametrize("name", ["cases.jsonl", TRIALS, TRACES, "outputs/c%231.1.txt"])
def test_only_regular_files_are_read(instead: Callable[[Path], None], name: str, run: RunFolder) -> None:
    (record, _) = tuple(run.records())
    instead(run.folder / name)
    read: dict[str, Callable[[], Any]] = {"cases.jsonl": run.cases, TRIALS: run.records}
    with pytest.raises(StorageError, match=rf"{name}: cannot be read"):
        read.get(name, lambda: run.trace(record))()
    assert any(name in problem and "cannot be read" in problem for problem in verify(run).problems)


# --- JSON that is none, or something else ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DEEP, "is nested too deeply"),
        (b'{"a":' * 100_000, "is nested too deeply"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"\xff\x00", "is not UTF-8"),
        (b"[1", "is not JSON"),
    ],
)
def test_text_that_is_no_json_is_named_with_its_place(text: bytes, said: str, run: RunFolder) -> None:
    (run.folder / TRIALS).write_bytes(text + b"\n")
    (run.folder / "cases.jsonl").write_bytes(text + b"\n")
    with pytest.raises(StorageError, match=rf"trials\.jsonl:1: {said}"):
        run.records()
    with pytest.raises(StorageError, match=rf"cases\.jsonl:1: {said}"):
        run.cases()
    problems = "\n".join(verify(run).problems)
    assert f"trials.jsonl:1: {said}" in problems
    assert f"cases.jsonl:1: {said}" in problems


@pytest.mark.parametrize(
    "text",
    [DEEP, b"[" * 900 + b"]" * 900, b"[]", b"1", b"null", b"\xff", b'{"run_id": 1}', b'{"run_id": ' + DEEP],
)
def test_a_run_json_that_says_of_no_run_is_one_error(text: bytes, run: RunFolder) -> None:
    (run.folder / "run.json").write_bytes(text)
    with pytest.raises(StorageError, match=r"run\.json: cannot be read as a run"):
        _ = run.info


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"started": "yesterday"}, "started: should be a time"),
        ({"started": "2026-01-31T12:00:00"}, "started: should be a time"),
        ({"ended": "9"}, "ended: should be a time"),
        ({"resumed": [{"at": "x"}]}, "resumed.0.at: should be a time"),
        ({"trials": {"c": 10**30}}, "trials.c: should be 0 to"),
    ],
)
def test_times_and_numbers_of_a_run_are_such(change: dict[str, Any], said: str, run: RunFolder) -> None:
    info = json.loads((run.folder / "run.json").read_text()) | change
    (run.folder / "run.json").write_text(json.dumps(info))
    with pytest.raises(StorageError, match=rf"run\.json: cannot be read as a run: {said}"):
        _ = run.info


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1]", "is no JSON object"),
        (b"null", "is no JSON object"),
        (DEEP, "is nested too deeply"),
        (b"\xff\xff", "is not UTF-8"),
        *((of_c(output_file=each), "output_file: should be") for each in ({}, 5, [], "x", {"file": "outputs/a.txt"})),
        (of_c(output_file={"file": "outputs/gone.txt", "digest": "x"}), r"gone\.txt: cannot be read"),
        (of_c(output_file={"file": "outputs/c%231.1.txt", "digest": "x"}, outputs=5), "outputs: should be a list"),
        (of_c(events="x"), "events: should be a list"),
        (of_c(events=[{"number": 1, "kind": "zzz"}]), "events.0"),
        (b'{"case_id": "d", "trial_index": 1, "attempt": 1}', "another attempt's stands there"),
        (b"{}", "another attempt's stands there"),
    ],
)
def test_a_trace_of_another_shape_is_named_with_its_place_though_its_digest_is_right(
    line: bytes, said: str, run: RunFolder
) -> None:
    give_trace(run, line)
    with pytest.raises(StorageError, match=said) as caught:
        trace_of(run)
    assert str(caught.value).startswith(str(run.folder))
    assert str(caught.value).count(str(run.folder)) == 1
    assert any(problem.startswith("trials.jsonl:1: ") for problem in verify(run).problems)


def test_a_trace_is_only_read_as_that_of_its_own_trial(run: RunFolder) -> None:
    first, second = (
        {name: getattr(record, name) for name in ("trace_at", "trace_size", "trace_digest")} for record in run.records()
    )
    change_records(run, second, first)
    with pytest.raises(StorageError, match=rf"{TRACES}, at byte \d+: the trace of c#1: is not where its record says"):
        trace_of(run)
    with pytest.raises(StorageError, match="the trace of c#1: is not where its record says"):
        _ = next(run.stored()).data


@pytest.mark.parametrize(
    "change", [{"trial_index": -1}, {"trial_index": 0}, {"trial_index": 10**30}, {"attempt": 10**30}, {"attempt": -1}]
)
def test_a_record_of_a_number_beyond_counting_is_none(change: dict[str, Any], run: RunFolder) -> None:
    change_records(run, change)
    with pytest.raises(StorageError, match=rf"trials\.jsonl:1: {next(iter(change))}: should be"):
        run.records()
    assert f"trials.jsonl:1: cannot be read: {next(iter(change))}: should be" in "\n".join(verify(run).problems)
