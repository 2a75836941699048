"""Large outputs stand once on the disk, and read back whole from record and trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from packed import contents, edit_traces, trace_lines
from seatrial.core.case import Case
from seatrial.core.run import RunInfo
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.environment.secrets import Redactor
from seatrial.errors import StorageError
from seatrial.store.frames import TRACES
from seatrial.store.rundir import RunFolder, RunWriter
from seatrial.store.verifying import verify

LARGE = "answer " * 20_000


def written(folder: Path, trace: Trace, masks: Redactor | None = None) -> RunFolder:
    """A finished run of one trial with this trace."""
    writer = RunWriter.create(folder, RunInfo(run_id="r", cases={"c": ""}), [Case(id="c")], masks)
    record = TrialRecord(case_id="c", status=TrialStatus.UNGRADED, stop_reason=trace.stop_reason, output=trace.output)
    writer.write(record, trace)
    writer.finish(writer.info)
    return RunFolder(folder)


def occurrences(folder: Path, text: str) -> int:
    return sum(each.count(text.encode()) for each in contents(folder))


@pytest.mark.parametrize("output", [LARGE, {"answer": LARGE}, "\ud835" + LARGE])
def test_a_large_output_stands_once_and_reads_back_whole(tmp_path: Path, output: Any) -> None:
    trace = Trace(output=output, outputs=("short", output), log="printed")
    run = written(tmp_path / "run", trace)
    (record,) = run.records()
    assert run.trace(record) == trace
    assert run.output(record) == output
    assert occurrences(run.folder, "answer " * 1_000) == 20
    line = json.loads(trace_lines(run.folder)[0])
    assert (line["outputs"], line["output_file"]["file"]) == (["short"], record.output_file)
    assert line["output_file"]["size"] == (run.folder / record.output_file).stat().st_size
    assert not verify(run).problems


def test_an_earlier_turns_large_output_stays_in_the_trace(tmp_path: Path) -> None:
    trace = Trace(outputs=(LARGE,), stop_reason=StopReason.TIMEOUT)
    run = written(tmp_path / "run", trace)
    assert run.trace(run.records()[0]) == trace
    assert not (run.folder / "outputs").exists()


def test_a_secret_in_a_large_output_is_masked_wherever_it_stands(tmp_path: Path) -> None:
    output = LARGE + "sk-1234567890"
    run = written(tmp_path / "run", Trace(output=output, outputs=(output,)), Redactor({"KEY": "sk-1234567890"}))
    (record,) = run.records()
    assert occurrences(run.folder, "sk-1234567890") == 0
    assert run.trace(record).output == run.output(record) == LARGE + "[secret:KEY]"


def test_a_large_output_that_was_changed_or_taken_away_is_an_error_that_names_it(tmp_path: Path) -> None:
    run = written(tmp_path / "run", Trace(output=LARGE, outputs=(LARGE,)))
    (record,) = run.records()
    file = run.folder / str(record.output_file)
    file.write_text("something else", encoding="utf-8")
    with pytest.raises(StorageError, match=r"outputs.*is not as it was written"):
        run.trace(record)
    file.unlink()
    with pytest.raises(StorageError, match=r"outputs.*cannot be read"):
        run.trace(record)


def test_a_trace_as_older_versions_wrote_it_is_read_as_before(tmp_path: Path) -> None:
    trace = Trace(output=LARGE, outputs=("short", LARGE))
    run = written(tmp_path / "run", trace)
    (record,) = run.records()
    data = {"case_id": "c", "trial_index": 1, "attempt": 1, "output": LARGE, "outputs": ["short", LARGE]}
    edit_traces(run.folder, lambda lines: lines.__setitem__(0, json.dumps(data)))
    size = (run.folder / TRACES).stat().st_size
    assert run.trace(record.model_copy(update={"trace_digest": None, "trace_size": size})) == trace


def test_written_again_a_large_output_is_put_aside_in_the_new_folder(tmp_path: Path) -> None:
    trace = Trace(output=LARGE, outputs=(LARGE,))
    (stored,) = written(tmp_path / "run", trace).stored()
    writer = RunWriter.create(tmp_path / "again", RunInfo(run_id="r2"), [Case(id="c")])
    writer.write_again(stored.record.model_copy(update={"output": LARGE, "output_file": None}), stored)
    writer.finish(writer.info)
    again = RunFolder(tmp_path / "again")
    assert again.trace(again.records()[0]) == trace
    assert occurrences(again.folder, "answer " * 1_000) == 20
