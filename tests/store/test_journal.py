"""What was appended survives; what is torn is cut off; the disk is synced in groups."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from made import passing
from packed import trace_lines
from seatrial.core.case import Case
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Message, Trace
from seatrial.core.trial import TrialRecord
from seatrial.errors import StorageError, UsageError
from seatrial.store.frames import Packer
from seatrial.store.journal import (
    COMMIT_EVERY_S,
    FIRST_LINK,
    TRACES,
    TRIALS,
    Journal,
    _Group,
    finished_lines,
    line_digest,
)
from seatrial.store.rundir import RunFolder, RunWriter

CASES = [Case(id=f"c{n}", input="x") for n in range(6)]
INFO = RunInfo(run_id="r1")


def trace_of(text: str) -> Trace:
    return Trace(events=(Message(number=1, role="user", content=text),), output=text, outputs=(text,))


def said(number: int) -> str:
    return f"said {number} " + "é" * number * 50  # traces of a few hundred bytes and of more than a thousand


def write(writer: RunWriter, numbers: range) -> None:
    for number in numbers:
        writer.write(passing(f"c{number}", output=said(number)), trace_of(said(number)))


def finish(writer: RunWriter) -> RunFolder:
    writer.finish(writer.info.model_copy(update={"status": RunStatus.FINISHED}))
    return RunFolder(writer.folder)


def ids(records: tuple[TrialRecord, ...]) -> list[str]:
    return [record.case_id for record in records]


def chain_holds(folder: Path) -> bool:
    previous = FIRST_LINK
    for line in (folder / TRIALS).read_bytes().splitlines():
        if json.loads(line)["previous"] != previous:
            return False
        previous = line_digest(line)
    return previous == RunFolder(folder).info.chain_end


def name_of(descriptor: int, folder: Path) -> str:
    """Which file of the folder this is."""
    status = os.fstat(descriptor)
    return next(path.name for path in folder.iterdir() if os.path.samestat(path.stat(), status))


@contextlib.contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """A full disk, as far as appending is concerned: writes stop at `size` bytes, in the middle of a line."""
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "run"
    writer = RunWriter.create(folder, INFO, CASES)
    write(writer, range(6))
    writer.close()
    return folder


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_truncation_reads_back_as_a_prefix_and_can_be_resumed(
    written: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = RunFolder(written).records()
    folder = tmp_path_factory.mktemp("torn")
    for name in ("run.json", "cases.jsonl", TRIALS, TRACES):
        content = (written / name).read_bytes()
        cut = data.draw(st.integers(0, len(content)), label=name) if name in (TRIALS, TRACES) else len(content)
        (folder / name).write_bytes(content[:cut])
    torn = RunFolder(folder)
    kept = torn.records()
    assert kept == whole[: len(kept)]
    assert [torn.trace(record).output for record in kept] == [said(n) for n in range(len(kept))]
    writer = RunWriter.resume(folder, INFO, CASES)
    assert writer.kept == kept
    write(writer, range(len(kept), 6))
    resumed = finish(writer)
    assert ids(resumed.records()) == ids(whole)
    assert [resumed.trace(record).output for record in resumed.records()] == [said(n) for n in range(6)]
    resumed.check_end()
    assert chain_holds(folder)


def test_a_trial_is_finished_exactly_when_its_record_and_its_trace_are_whole(written: Path, tmp_path: Path) -> None:
    lines = list(finished_lines(written))
    assert sum(len(line.text) for line in lines) == (written / TRIALS).stat().st_size
    for name in ("run.json", "cases.jsonl", TRIALS):
        (tmp_path / name).write_bytes((written / name).read_bytes())
    traces, begin = (written / TRACES).read_bytes(), lines[-1].data["trace_at"]
    for end in range(begin, len(traces) + 1):
        (tmp_path / TRACES).write_bytes(traces[:end])
        assert [line.text for line in finished_lines(tmp_path)] == [
            line.text for line in lines[: 5 + (end == len(traces))]
        ]


@pytest.mark.parametrize("place", ["7", 7.0, True, [], {}])
@pytest.mark.parametrize("name", ["trace_at", "trace_size"])
def test_a_record_whose_trace_is_at_no_place_in_a_file_is_an_error_that_names_it(
    tmp_path: Path, name: str, place: Any
) -> None:
    folder = torn(tmp_path / "run")
    lines = [json.loads(line) for line in (folder / TRIALS).read_bytes().splitlines()]
    lines[1][name] = place
    (folder / TRIALS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(StorageError, match=r"trials\.jsonl:2: trace_at and trace_size are no place in a file"):
        RunFolder(folder).records()


def test_the_disk_is_synced_in_groups_traces_before_records(tmp_path: Path) -> None:
    synced: list[str] = []
    began = time.monotonic()
    journal = Journal(tmp_path, sync=lambda descriptor: synced.append(name_of(descriptor, tmp_path)))
    for number in range(1_000):
        journal.trace(b"{}")
        journal.record(b'{"number": %d}' % number)
    journal.close()
    assert synced.index(TRACES) < synced.index(TRIALS)
    groups = 1 + (time.monotonic() - began) // COMMIT_EVERY_S
    assert 2 <= len(synced) <= 2 * groups


def test_a_group_is_synced_while_the_run_goes_on(tmp_path: Path) -> None:
    synced = threading.Event()
    journal = Journal(tmp_path, sync=lambda descriptor: synced.set())
    journal.trace(b"{}")
    journal.record(b"{}")
    assert synced.wait(20)
    journal.close()


def test_a_disk_that_fails_while_syncing_ends_the_run_with_the_next_trial(tmp_path: Path) -> None:
    failed = threading.Event()

    def fail(descriptor: int) -> None:
        failed.set()
        raise OSError(5, "Input/output error")

    journal = Journal(tmp_path, sync=fail)
    journal.trace(b"{}")
    journal.record(b"{}")
    assert failed.wait(20)
    journal._group._thread.join()  # type: ignore[union-attr]
    with pytest.raises(StorageError, match=r"traces\.jsonl\.zst: cannot be written \(Input/output error\)"):
        journal.record(b"{}")
    with pytest.raises(StorageError):
        journal.close()


def test_a_file_that_a_record_names_is_synced_before_the_record(tmp_path: Path) -> None:
    synced: list[str] = []
    journal = Journal(tmp_path, sync=lambda descriptor: synced.append(name_of(descriptor, tmp_path)))
    (tmp_path / "large.txt").write_text("x")
    journal.beside(tmp_path / "large.txt")
    journal.trace(b"{}")
    journal.record(b"{}")
    journal.commit()
    assert synced == ["large.txt", TRACES, TRIALS]


def test_what_is_on_the_disk_is_not_synced_again(tmp_path: Path) -> None:
    synced: list[str] = []
    journal = Journal(tmp_path, sync=lambda descriptor: synced.append(name_of(descriptor, tmp_path)))
    journal.trace(b"{}")
    journal.record(b"{}")
    journal.commit()
    journal.commit()
    journal.close()
    assert synced == [TRACES, TRIALS]


def test_what_another_process_appended_is_synced_once(tmp_path: Path) -> None:
    synced: list[str] = []
    (tmp_path / TRACES).write_text("{}\n")
    journal = Journal(tmp_path, sync=lambda descriptor: synced.append(name_of(descriptor, tmp_path)))
    journal.commit()
    journal.close()
    assert synced == [TRACES]


def test_a_line_that_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.trace(b"{}")
    journal.record(b"1" * 300)
    with (
        no_file_larger_than(500),
        pytest.raises(StorageError, match=r"trials\.jsonl: cannot be written \(File too large\)"),
    ):
        journal.record(b"2" * 300)
    assert (tmp_path / TRIALS).read_bytes() == b"1" * 300 + b"\n"
    journal.record(b"3")
    journal.close()
    assert (tmp_path / TRIALS).read_bytes() == b"1" * 300 + b"\n3\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / TRACES).symlink_to("/dev/full")
    writer = RunWriter.create(tmp_path / "run", INFO, CASES)
    writer.finish(INFO)
    (tmp_path / "run" / TRACES).unlink()
    (tmp_path / "run" / TRACES).symlink_to("/dev/full")
    writer = RunWriter.resume(tmp_path / "run", INFO, CASES)
    with pytest.raises(StorageError, match=r"traces\.jsonl\.zst: cannot be written \(No space left on device\)"):
        write(writer, range(1))
    with contextlib.suppress(StorageError):
        writer.close()
    assert not (tmp_path / "run" / "run.lock").exists()


def torn(folder: Path, **changes: Any) -> Path:
    writer = RunWriter.create(folder, INFO, CASES)
    write(writer, range(3))
    writer.close()
    return folder


def test_resuming_over_a_line_that_was_changed_is_refused(tmp_path: Path) -> None:
    trials = torn(tmp_path / "run") / TRIALS
    trials.write_bytes(trials.read_bytes().replace(b"said 0", b"said 9"))
    before = trials.read_bytes()
    with pytest.raises(UsageError, match=r"trials\.jsonl:2: a line before it was changed or removed"):
        RunWriter.resume(tmp_path / "run", INFO, CASES)
    assert trials.read_bytes() == before
    assert not (tmp_path / "run" / "run.lock").exists()


def test_resuming_without_the_traces_is_refused_though_the_records_still_read(tmp_path: Path) -> None:
    folder = torn(tmp_path / "run")
    (folder / TRACES).unlink()
    assert len(RunFolder(folder).records()) == 3
    with pytest.raises(UsageError, match=r"traces\.jsonl\.zst: is missing, so the run cannot be resumed"):
        RunWriter.resume(folder, INFO, CASES)


def edit(folder: Path, number: int, **fields: Any) -> None:
    """Change a line, and neither those behind nor what it holds of the one before."""
    lines = (folder / TRIALS).read_bytes().splitlines(keepends=True)
    lines[number - 1] = json.dumps(json.loads(lines[number - 1]) | fields).encode() + b"\n"
    (folder / TRIALS).write_bytes(b"".join(lines))


def refusal(folder: Path) -> str:
    """What is said of going on with a run; that changes nothing."""

    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    with (folder / TRACES).open("ab") if (folder / TRACES).is_file() else contextlib.nullcontext() as traces:
        if traces is not None:
            traces.write(Packer()(b'{"case_id":"in flight"}')[:-3])
    before = contents()
    with pytest.raises((UsageError, StorageError)) as error:
        RunWriter.resume(folder, RunFolder(folder).info, CASES)
    assert contents() == before
    return str(error.value)


def pack_anew(folder: Path) -> None:
    """All traces as one frame."""
    text = b"".join(line + b"\n" for line in trace_lines(folder))
    (folder / TRACES).write_bytes(zstandard.ZstdCompressor(level=19).compress(text))


def test_resuming_over_traces_that_were_packed_anew_is_refused(tmp_path: Path) -> None:
    folder = torn(tmp_path / "run")
    pack_anew(folder)
    assert "trials.jsonl:1: traces.jsonl.zst " in refusal(folder)
    assert "c0#1" in refusal(folder)


def test_resuming_over_a_single_trace_that_was_packed_anew_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writer = RunWriter.create(folder, INFO, CASES)
    write(writer, range(1))
    writer.close()
    pack_anew(folder)
    assert "trials.jsonl:1: traces.jsonl.zst ends before the trace of c0#1 does, but not within it" in refusal(folder)


def test_resuming_over_traces_that_begin_anew_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = torn(tmp_path / "run")
    traces = (folder / TRACES).read_bytes()
    (folder / TRACES).write_bytes(b"\0" + traces)
    assert "trials.jsonl:1: traces.jsonl.zst holds no trace where c0#1 has its own" in refusal(folder)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "place",
    [
        {"trace_at": 999_999_999},
        {"trace_at": -1_000_000},
        {"trace_at": None},
        {"trace_at": 1},
        {"trace_size": 1},
        {"trace_size": 0},
        {"trace_size": -1},
        {"trace_size": None},
        {"trace_size": 999_999_999},
        {"trace_digest": None},
    ],
)
def test_resuming_over_a_record_whose_trace_is_said_to_be_elsewhere_is_refused(
    tmp_path: Path, number: int, place: dict[str, Any]
) -> None:
    folder = torn(tmp_path / "run")
    edit(folder, number, **place)
    message = refusal(folder)
    assert f"trials.jsonl:{number}: " in message or f"trials.jsonl:{number + 1}: a line before it" in message


def test_a_record_in_the_middle_whose_trace_is_said_to_be_beyond_the_file_hides_no_later_ones(tmp_path: Path) -> None:
    folder = torn(tmp_path / "run")
    edit(folder, 2, trace_at=999_999_999)
    with pytest.raises(StorageError, match=r"traces\.jsonl\.zst: ends before the trace of c1#1 .*trials\.jsonl:2"):
        RunFolder(folder).records()


def test_resuming_over_traces_without_their_records_is_refused(tmp_path: Path) -> None:
    folder = torn(tmp_path / "run")
    (folder / TRIALS).unlink()
    assert "trials.jsonl: is missing, though traces.jsonl.zst holds traces" in refusal(folder)


@pytest.mark.parametrize("name", [TRIALS, TRACES])
def test_resuming_over_a_folder_in_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = torn(tmp_path / "run")
    (folder / name).unlink()
    (folder / name).mkdir()
    assert f"{name}: is missing" in refusal(folder)


def test_resuming_over_a_record_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    folder = torn(tmp_path / "run")
    with (folder / TRIALS).open("ab") as file:
        file.write(b"[" * 200_000 + b"\n")
    assert "trials.jsonl:4: is nested too deeply" in refusal(folder)


@pytest.mark.parametrize("content", [b"", b"{}\n"])
def test_resuming_over_other_cases_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = torn(tmp_path / "run")
    (folder / "cases.jsonl").write_bytes(content)
    assert "cases.jsonl: is not as it was written" in refusal(folder)


def test_a_trace_between_others_whose_record_found_no_room_is_no_reason_to_refuse(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writer = RunWriter.create(folder, INFO, CASES)
    write(writer, range(1))
    writer._journal.trace(Packer()(b'{"case_id":"c3"}'))
    write(writer, range(1, 3))
    writer.close()
    resumed = RunWriter.resume(folder, INFO, CASES)
    assert ids(tuple(resumed.kept)) == ["c0", "c1", "c2"]
    resumed.close()


@pytest.mark.parametrize("torn_by", [0, 9])
def test_a_trace_without_its_record_goes_and_each_trial_has_one(tmp_path: Path, torn_by: int) -> None:
    folder = torn(tmp_path / "run")
    frames = Packer()(b'{"case_id":"c3"}') + Packer()(b'{"case_id":"c4"}' * 100)
    with (folder / TRACES).open("ab") as file:
        file.write(frames[: len(frames) - torn_by])
    writer = RunWriter.resume(folder, INFO, CASES)
    write(writer, range(3, 6))
    run = finish(writer)
    assert [run.trace(record).output for record in run.records()] == [said(n) for n in range(6)]
    assert [json.loads(line)["case_id"] for line in trace_lines(folder)] == [f"c{n}" for n in range(6)]


def test_bl_072_what_is_on_record_twice_counts_once(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", INFO, CASES)
    for output in ("first", "second"):
        writer.write(passing("c1", output=output), trace_of(output))
    writer.write(passing("c1", attempt=2, output="again"), trace_of("again"))
    run = finish(writer)
    assert [(record.attempt, record.output) for record in run.records()] == [(1, "first"), (2, "again")]


def test_a_run_that_was_ended_before_its_first_file_stood_counts_as_not_begun(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.lock").write_text("123\n")
    (folder / ".run.json.0a1b2c3d.tmp").write_text("{")
    writer = RunWriter.create(folder, INFO, CASES)
    assert finish(writer).records() == ()


def test_a_run_that_was_ended_before_its_cases_stood_gets_them_when_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    RunWriter.create(folder, INFO, CASES).close()
    (folder / "cases.jsonl").unlink()
    with pytest.raises(StorageError, match="ended before it began, and can be resumed"):
        RunFolder(folder).cases()
    run = finish(RunWriter.resume(folder, INFO, CASES))
    assert [case.id for case in run.cases()] == [case.id for case in CASES]


def test_the_thread_that_commits_ends_though_the_end_comes_just_before_it_clears_its_mark() -> None:
    group = _Group(lambda: None)

    class EndsWhileItIsCleared(threading.Event):
        def clear(self) -> None:
            group._ended.set()
            self.set()
            super().clear()

    group._dirty = EndsWhileItIsCleared()
    group.touch()
    assert group._thread is not None
    group._thread.join(timeout=30)
    assert not group._thread.is_alive()
