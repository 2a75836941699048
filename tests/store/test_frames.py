"""Traces are kept packed: any reader of Zstandard reads them, and nobody is harmed by what only looks like one."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from made import passing
from packed import trace_lines
from seatrial.core.case import Case
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Message, Trace
from seatrial.errors import StorageError, UsageError
from seatrial.store.frames import TRACES, Packer, Unpacker
from seatrial.store.journal import TRIALS, line_digest
from seatrial.store.rundir import RunFolder, RunWriter
from seatrial.store.verifying import verify

INFO = RunInfo(run_id="r1", cases={"c": ""}, trials={"c": 4})
KEY = b'"case_id":"c","trial_index":2,"attempt":1'
TEXTS = ["short", "said again " * 200, "é\u2028\ud835" * 300, "end"]


def written(folder: Path) -> RunFolder:
    """A finished run of four trials whose traces are short and long."""
    writer = RunWriter.create(folder, INFO, [Case(id="c")])
    for trial, text in enumerate(TEXTS, start=1):
        message = Message(number=1, role="user", content=text)
        writer.write(passing("c", trial, output=trial), Trace(events=(message,), output=trial, outputs=(trial,)))
    writer.finish(INFO.model_copy(update={"status": RunStatus.FINISHED}))
    return RunFolder(folder)


lines = st.lists(
    st.builds(lambda text, times: text.replace(b"\n", b"") * times, st.binary(max_size=99), st.integers(0, 99)),
    max_size=8,
)


@given(lines)
@example([b"x" * size for size in (0, 1, 254, 255, 256, 509, 510, 511, 512, 513, 200_000)])
def test_lines_of_any_size_come_back_one_by_one_and_all_at_once(lines: list[bytes]) -> None:
    pack, unpack = Packer(), Unpacker()
    frames = [pack(line) for line in lines]
    assert [unpack(frame) for frame in frames] == lines
    with zstandard.open(io.BytesIO(b"".join(frames)), "rb") as file:
        assert file.read() == b"".join(line + b"\n" for line in lines)


def test_what_becomes_as_large_as_can_be_is_read() -> None:
    for blocks in (1, 10, 1_000):
        frame = claiming(blocks * 128 * 1024 + 1, blocks)
        assert Unpacker()(frame) == b"a" * (blocks * 128 * 1024)
    assert Unpacker()(Packer()(b"a" * 10_000_000)) == b"a" * 10_000_000


def test_each_record_says_where_its_trace_stands_and_its_digest_and_nothing_stands_between(tmp_path: Path) -> None:
    run = written(tmp_path)
    data, end = (tmp_path / TRACES).read_bytes(), 0
    for record in run.records():
        assert record.trace_at == end
        end += record.trace_size or 0
        frame = data[record.trace_at : end]
        assert record.trace_digest == "sha256:" + hashlib.sha256(frame).hexdigest()
        assert json.loads(Unpacker()(frame))["trial_index"] == record.trial_index
    assert end == len(data)
    assert [run.trace(record).events[0].content for record in run.records()] == TEXTS  # type: ignore[union-attr]


@pytest.mark.skipif(shutil.which("zstdcat") is None, reason="needs zstd")
def test_the_command_for_such_files_reads_it_as_plain_lines(tmp_path: Path) -> None:
    written(tmp_path)
    read = subprocess.run(["zstdcat", str(tmp_path / TRACES)], capture_output=True, check=True).stdout
    assert read.splitlines() == trace_lines(tmp_path)
    assert [json.loads(line)["output"] for line in read.splitlines()] == [1, 2, 3, 4]


def test_two_lines_of_python_read_it(tmp_path: Path) -> None:
    written(tmp_path)
    with zstandard.open(tmp_path / TRACES, "rt", encoding="utf-8", newline="\n") as file:
        assert [json.loads(line)["output"] for line in file] == [1, 2, 3, 4]


# --- folders from anywhere -------------------------------------------------------------------------------------------


def claiming(size: int, blocks: int) -> bytes:
    """A frame that says it becomes so large, of blocks that each become 128 KB."""
    block = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"a"
    last = (1 << 3 | 1).to_bytes(3, "little") + b"\n"
    return b"\x28\xb5\x2f\xfd\xc0\x70" + size.to_bytes(8, "little") + block * blocks + last


def without_size(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(text)


def by_dictionary(text: bytes) -> bytes:
    dictionary = zstandard.ZstdCompressionDict(b"in every trace " * 20)
    return zstandard.ZstdCompressor(dict_data=dictionary).compress(text)


PACKED = zstandard.ZstdCompressor().compress(b"{" + KEY + b',"log":"' + b"said " * 300 + b'"}\n')
NO_FRAME = "is no whole Zstandard frame"
HOSTILE = {
    "a bomb": (claiming(100 << 30, 10), "would become 107,374,182,400 bytes (1,000,000,000 are the most)"),
    "more than it says": (claiming(1_000, 4_000), NO_FRAME),
    "less than it says": (claiming(500_000, 1), NO_FRAME),
    "less than it could become": (claiming(900_000_000, 1), NO_FRAME),
    "an unknown size": (without_size(b"{" + KEY + b"}\n"), "does not say how large it is"),
    "an unknown size, repeated": (without_size(b"{" + KEY + b"}\n") * 2, "does not say how large it is"),
    "torn": (PACKED[:-1], NO_FRAME),
    "nothing but its beginning": (PACKED[:5], NO_FRAME),
    "two frames": (PACKED * 2, NO_FRAME),
    "more behind it": (PACKED + b"\0", NO_FRAME),
    "two lines": (Packer()(b"{" + KEY + b"}\n{}"), "is not one line"),
    "no line": (zstandard.ZstdCompressor().compress(b"{" + KEY + b"}"), "is not one line"),
    "nothing": (zstandard.ZstdCompressor().compress(b""), "is not one line"),
    "of a dictionary": (by_dictionary(b"{" + KEY + b',"log":"in every trace in every trace "}\n'), NO_FRAME),
}
"""What stands in place of a frame, and what is said of it."""


def forged(run: RunFolder, frame: bytes | None = None, **changes: Any) -> None:
    """Put a frame in place of the second trial's, or change what its record says of it, and hide that well."""
    records = [json.loads(line) for line in (run.folder / TRIALS).read_bytes().splitlines()]
    if frame is not None:
        changes = {"trace_at": (run.folder / TRACES).stat().st_size, "trace_size": len(frame)}
        with (run.folder / TRACES).open("ab") as file:
            file.write(frame)
        changes["trace_digest"] = "sha256:" + hashlib.sha256(frame).hexdigest()
    records[1].update(changes)
    texts: list[bytes] = []
    for record in records:
        record["previous"] = line_digest(texts[-1]) if texts else record["previous"]
        texts.append(json.dumps(record).encode())
    (run.folder / TRIALS).write_bytes(b"".join(text + b"\n" for text in texts))
    info = json.loads((run.folder / "run.json").read_bytes()) | {"chain_end": line_digest(texts[-1])}
    (run.folder / "run.json").write_text(json.dumps(info))


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_trace_is_named_with_its_place_and_takes_no_memory(tmp_path: Path, name: str) -> None:
    run, (frame, said) = written(tmp_path), HOSTILE[name]
    at = (tmp_path / TRACES).stat().st_size
    forged(run, frame)
    record = run.records()[1].whole
    tracemalloc.start()
    try:
        with pytest.raises(StorageError) as raised:
            run.trace(record)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(raised.value) == f"{tmp_path / TRACES}, at byte {at}: the trace of c#2 {said}"
    assert held < 1_000_000
    with pytest.raises(StorageError, match=r"traces\.jsonl\.zst, at byte \d+: the trace of c#2 "):
        list(run.stored())
    assert verify(run).problems == (f"trials.jsonl:2: the trace of c#2 {said}",)


@pytest.mark.parametrize("frame", [b"", b"{" + KEY + b"}\n", b"\0" * 99, b"\x50\x2a\x4d\x18\x04\0\0\0abcd"])
def test_garbage_in_place_of_a_frame_is_named(tmp_path: Path, frame: bytes) -> None:
    run = written(tmp_path)
    forged(run, frame)
    with pytest.raises(StorageError, match=r"traces\.jsonl\.zst.* the trace of c#2 is"):
        run.trace(run.records()[1].whole)
    (problem,) = verify(run).problems
    assert problem == "trials.jsonl:2: the trace of c#2 is " + ("not where the record says" if frame else "missing")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"trace_at": -1}, "is missing"),
        ({"trace_at": 0, "trace_size": -5}, "is missing"),
        ({"trace_at": None}, "is missing"),
        ({"trace_size": None}, "is missing"),
        ({"trace_at": 10**30}, "is missing"),
        ({"trace_size": 10**30}, "is missing"),
        ({"trace_at": 40}, "is not where the record says"),
        ({"trace_at": 0}, "is not as the run wrote it (its record has another digest)"),
        ({"trace_at": 0, "trace_digest": None}, NO_FRAME),
    ],
)
def test_a_record_that_points_elsewhere_is_named(tmp_path: Path, place: dict[str, Any], said: str) -> None:
    run = written(tmp_path)
    record = run.records()[1].whole.model_copy(update=place)
    with pytest.raises(StorageError, match=r"traces\.jsonl\.zst.*: the trace of c#2 is"):
        run.trace(record)
    forged(run, **place)
    assert verify(run).problems == (f"trials.jsonl:2: the trace of c#2 {said}",)


def test_traces_that_were_swapped_or_taken_out_are_named_one_by_one(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    records = [entry.whole for entry in run.records()]
    forged(run, trace_at=records[3].trace_at, trace_size=records[3].trace_size)
    assert verify(run).problems == ("trials.jsonl:2: the trace of c#2 is not where the record says",)

    run = written(tmp_path / "again")
    data = (run.folder / TRACES).read_bytes()
    (run.folder / TRACES).write_bytes(data[: records[1].trace_at] + data[records[2].trace_at :])
    assert [problem.partition(" is ")[0] for problem in verify(run).problems] == [
        f"trials.jsonl:{number}: the trace of c#{number}" for number in (2, 3, 4)
    ]


def test_any_changed_byte_of_a_trace_is_named(tmp_path: Path) -> None:
    run = written(tmp_path)
    record = run.records()[1].whole
    data = (tmp_path / TRACES).read_bytes()
    for at in range(record.trace_at or 0, (record.trace_at or 0) + (record.trace_size or 0)):
        (tmp_path / TRACES).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        (problem,) = verify(run).problems
        assert problem.startswith("trials.jsonl:2: the trace of c#2 is not ")


def test_a_run_of_the_time_before_is_told_from_one_without_traces(tmp_path: Path) -> None:
    run = written(tmp_path)
    (tmp_path / TRACES).rename(tmp_path / "traces.jsonl")
    said = "is missing: the run is of a version that kept traces.jsonl, which is not read any more; run it again"
    assert len(run.records()) == 4
    assert verify(run).problems == (f"{TRACES}: {said}",)
    for read in (lambda: run.trace(run.records()[0].whole), lambda: list(run.stored())):
        with pytest.raises(StorageError) as raised:
            read()
        assert str(raised.value) == f"{tmp_path / TRACES}: {said}"
    with pytest.raises(UsageError, match="run it again, so the run cannot be resumed"):
        RunWriter.resume(tmp_path, INFO, [Case(id="c")])
    (tmp_path / "traces.jsonl").unlink()
    assert verify(run).problems == (f"{TRACES}: is missing",)


def test_a_trace_that_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.rundir.LARGEST", 200_000)
    writer = RunWriter.create(tmp_path, INFO, [Case(id="c")])
    writer.write(passing("c", 1), Trace(log="x" * 190_000))
    with pytest.raises(StorageError, match=r"the trace of c#2 has 300,\d+ bytes \(200,000 are too many\)"):
        writer.write(passing("c", 2), Trace(log="x" * 300_000))
    writer.close()
    assert [str(record.key) for record in RunFolder(tmp_path).records()] == ["c#1"]


UNPACK = """
import resource, sys
import zstandard
from seatrial.store.frames import Unpacker
frame = zstandard.ZstdCompressor().compress(bytes(300_000_000))
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 100_000_000,) * 2)
try:
    Unpacker()(frame)
except ValueError as error:
    print(len(frame), error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to know its own memory")
def test_a_frame_that_there_is_no_memory_for_is_an_error_like_others() -> None:
    done = subprocess.run([sys.executable, "-c", UNPACK], capture_output=True, text=True, check=False)
    assert "would become 300,000,000 bytes, for which there is not enough memory" in done.stdout, done.stderr
