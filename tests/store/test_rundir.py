"""A run folder keeps every finished trial, exactly, and shows when it was touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packed import contents, trace_lines
from seatrial.core.case import Case
from seatrial.core.encoding import to_json
from seatrial.core.grade import Grade, Verdict
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Message, StopReason, ToolCallEvent, Trace
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.errors import StorageError, UsageError
from seatrial.store.frames import TRACES
from seatrial.store.journal import FIRST_LINK, line_digest
from seatrial.store.rundir import RunFolder, RunWriter

CASE = Case(id="a/b", input={"message": "hello"}, expected={"required_tools": [], "handoff": {"target": None}})


def record(case_id: str = "a/b", **changes: Any) -> TrialRecord:
    fields: dict[str, Any] = {"case_id": case_id, "status": TrialStatus.PASSED, "stop_reason": StopReason.ANSWERED}
    return TrialRecord(**(fields | changes))


TRACE = Trace(
    events=(
        Message(number=1, role="user", content="hello"),
        ToolCallEvent(number=2, name="look", arguments={"n": 1}, result={"$type": "decimal", "value": "1.10"}, ended=3),
    ),
    observes=frozenset({"tool_calls"}),
    output="done",
    outputs=("done",),
)


def write_run(folder: Path, *written: tuple[TrialRecord, Trace]) -> RunFolder:
    writer = RunWriter.create(folder, RunInfo(run_id="r1"), [CASE])
    for item in written:
        writer.write(*item)
    writer.finish(writer.info.model_copy(update={"status": RunStatus.FINISHED}))
    return RunFolder(folder)


def test_records_traces_and_cases_read_back_equal(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", (record(output="done"), TRACE), (record(trial_index=2), Trace()))
    first, second = run.records()
    assert run.trace(first) == TRACE
    assert run.trace(second) == Trace()
    assert (first.output, first.run_id, second.trial_index) == ("done", "r1", 2)
    assert run.info.status is RunStatus.FINISHED
    (case,) = run.cases()
    assert case.expected.required_tools == ()
    assert case.expected.handoff is not None
    assert case.expected.handoff.expects_target
    assert case.digest == CASE.digest


def test_each_line_holds_the_digest_of_the_line_before(tmp_path: Path) -> None:
    write_run(tmp_path, *[(record(trial_index=n), Trace()) for n in (1, 2, 3)])
    lines = (tmp_path / "trials.jsonl").read_bytes().splitlines()
    links = [json.loads(line)["previous"] for line in lines]
    assert links == [FIRST_LINK, line_digest(lines[0]), line_digest(lines[1])]


def test_a_torn_last_line_is_no_finished_trial(tmp_path: Path) -> None:
    run = write_run(tmp_path, (record(), Trace()), (record(trial_index=2), Trace()))
    trials = tmp_path / "trials.jsonl"
    trials.write_bytes(trials.read_bytes()[:-20])
    assert [item.trial_index for item in run.records()] == [1]


def test_a_broken_line_before_the_last_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    run = write_run(tmp_path, (record(), Trace()), (record(trial_index=2), Trace()))
    trials = tmp_path / "trials.jsonl"
    first, second = trials.read_bytes().splitlines(keepends=True)
    trials.write_bytes(first[:30] + b"\n" + second)
    with pytest.raises(StorageError, match=r"trials\.jsonl:1: is not JSON"):
        run.records()


def test_an_output_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(UsageError, match="not empty"):
        RunWriter.create(tmp_path, RunInfo(run_id="r"), [])
    assert (tmp_path / "mine.txt").read_text() == "keep me"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        RunWriter.create(tmp_path / "file" / "run", RunInfo(run_id="r"), [])


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder"):
        RunFolder(tmp_path)


@pytest.mark.parametrize("output", ["x" * 70_000, ["y" * 70_000], "\ud835" + "z" * 70_000, {"\ud835": "z" * 70_000}])
def test_a_large_output_goes_whole_to_a_file_and_its_start_to_the_record(tmp_path: Path, output: Any) -> None:
    run = write_run(tmp_path, (record(output=output), Trace()))
    (kept,) = run.records()
    assert isinstance(kept.output, str)
    assert len(kept.output) < 2_100
    assert kept.output.endswith("truncated, 70.0 kB")
    assert kept.output_file is not None
    assert kept.output_file.startswith("outputs/")
    assert run.output(kept) == output


def test_bl_094_any_text_is_stored_and_read_back_equal(tmp_path: Path) -> None:
    texts = ["\ud835 ok", "a\u0000b", "\U0001f600", *[f"plain {n}" for n in range(7)]]
    run = write_run(tmp_path, *[(record(f"case{n}", output=text), Trace(output=text)) for n, text in enumerate(texts)])
    records = run.records()
    assert [item.output for item in records] == texts
    assert [run.trace(item).output for item in records] == texts


def test_bl_106_different_ids_never_share_an_output_file(tmp_path: Path) -> None:
    ids = ["x/one", "y/one", "one", "ONE"]
    run = write_run(tmp_path, *[(record(case_id, output=case_id * 70_000), Trace()) for case_id in ids])
    files = [item.output_file for item in run.records()]
    assert len({str(name).lower() for name in files}) == 4
    assert [str(run.output(item))[: len(item.case_id)] for item in run.records()] == ids


class Shout:
    def may_hold(self, line: bytes) -> bool:
        return b"hush" in line

    def value(self, value: Any) -> Any:
        return json.loads(json.dumps(value).replace("hush", "[secret:X]"))


def test_everything_passes_the_masks_before_it_is_written(tmp_path: Path) -> None:
    case = Case(id="c", input="hush")
    writer = RunWriter.create(tmp_path, RunInfo(run_id="r", agent={"target": "hush"}), [case], Shout())
    kept = writer.write(record("c", output="hush", detail="hush"), Trace(output="hush", log="hush"))
    writer.finish(writer.info)
    assert kept.output == "[secret:X]"
    assert not any(b"hush" in text for text in contents(tmp_path))


class Everything:
    """Masks every text there is: a secret may be spelt like any word of the format."""

    def may_hold(self, line: bytes) -> bool:
        return True

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return "[secret:X]" if isinstance(value, str) else value


def test_a_secret_that_is_spelt_like_a_word_of_the_format_breaks_no_record(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, RunInfo(run_id="r"), [Case(id="c", input="x", risk="high")], Everything())
    grade = Grade(name="answer", verdict=Verdict.PASS, reason="said it")
    kept = writer.write(record("c", output="passed", grades=(grade,)), TRACE)
    writer.finish(writer.info)
    assert (kept.status, kept.output, kept.case_id) == (TrialStatus.PASSED, "[secret:X]", "c")
    assert kept.grades[0].reason == "[secret:X]"
    run = RunFolder(tmp_path)
    assert run.trace(kept).tool_calls[0].name == "[secret:X]"
    assert (run.cases()[0].id, run.cases()[0].input) == ("c", "[secret:X]")


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(), s, max_size=3),
        max_leaves=8,
    )
)
def test_any_output_survives_the_disk(tmp_path_factory: pytest.TempPathFactory, output: Any) -> None:
    encoded = to_json(output)
    folder = tmp_path_factory.mktemp("run")
    run = write_run(folder, (record(output=encoded), Trace(output=encoded)))
    (kept,) = run.records()
    assert kept.output == encoded
    assert run.trace(kept).output == encoded
    json.loads((folder / "trials.jsonl").read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_stored_trials_come_one_at_a_time_and_can_be_written_again(tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", (record(output="done"), TRACE), (record(trial_index=2), Trace()))
    writer = RunWriter.create(tmp_path / "two", RunInfo(run_id="r2", build_id="b"), [CASE])
    for stored in first.stored():
        assert stored.trace() == first.trace(stored.record)
        writer.write_again(stored.record.model_copy(update={"status": TrialStatus.FAILED}), stored)
    writer.finish(writer.info)
    second = RunFolder(tmp_path / "two")
    assert [(item.run_id, item.build_id, str(item.status)) for item in second.records()] == [("r2", "b", "failed")] * 2
    assert (tmp_path / "two" / TRACES).read_bytes() == (tmp_path / "one" / TRACES).read_bytes()
    links = [json.loads(line)["previous"] for line in (tmp_path / "two/trials.jsonl").read_bytes().splitlines()]
    assert links == [FIRST_LINK, line_digest((tmp_path / "two/trials.jsonl").read_bytes().splitlines()[0])]


def test_masks_that_came_later_hold_for_a_trace_that_is_written_again(tmp_path: Path) -> None:
    class Masks:
        def value(self, value: Any) -> Any:
            return json.loads(json.dumps(value).replace("hello", "[secret:X]"))

        def may_hold(self, line: bytes) -> bool:
            return b"hello" in line

    (stored,) = write_run(tmp_path / "one", (record(), TRACE)).stored()
    writer = RunWriter.create(tmp_path / "two", RunInfo(run_id="r2"), [CASE], Masks())
    writer.write_again(stored.record, stored)
    writer.finish(writer.info)
    assert b"hello" in stored.line
    assert not any(b"hello" in line for line in trace_lines(tmp_path / "two"))


def test_a_large_text_keeps_its_line_ends(tmp_path: Path) -> None:
    text = "line\r\n" * 20_000 + "\r"
    run = write_run(tmp_path, (record(output=text), Trace()))
    assert run.output(run.records()[0]) == text


def test_a_trial_whose_trace_is_not_there_has_not_finished_while_the_run_has_not(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, RunInfo(run_id="r"), [CASE])
    writer.write(record(), TRACE)
    writer.close()
    (tmp_path / TRACES).write_bytes(b"")
    run = RunFolder(tmp_path)
    assert list(run.stored()) == []
    assert run.records() == ()


def test_a_trial_whose_trace_is_cut_off_a_run_that_has_ended_is_an_error_that_names_both(tmp_path: Path) -> None:
    run = write_run(tmp_path, (record(), TRACE), (record(trial_index=2), TRACE))
    (tmp_path / TRACES).write_bytes((tmp_path / TRACES).read_bytes()[:-1])
    for read in (run.records, lambda: list(run.stored()), run.check_end):
        with pytest.raises(StorageError, match=r"traces\.jsonl\.zst: ends before the trace of a/b#2 .*trials\.jsonl:2"):
            read()


@pytest.mark.parametrize("name", ["trials.jsonl", TRACES])
def test_a_run_that_has_ended_misses_what_is_taken_away(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path, (record(), TRACE))
    run.check_end()
    (tmp_path / name).unlink()
    with pytest.raises(StorageError, match=f"{name}: is missing"):
        run.check_end()
    with pytest.raises(StorageError, match=f"{name}: is missing"):
        list(run.stored())


def test_a_run_that_has_ended_misses_its_last_line(tmp_path: Path) -> None:
    run = write_run(tmp_path, (record(), TRACE), (record(trial_index=2), TRACE))
    trials = tmp_path / "trials.jsonl"
    trials.write_bytes(trials.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(StorageError, match=r"trials\.jsonl: does not end as it did when the run ended"):
        run.check_end()


def test_cases_that_are_missing_are_no_reason_to_resume_a_run_that_began(tmp_path: Path) -> None:
    run = write_run(tmp_path, (record(), TRACE))
    (tmp_path / "cases.jsonl").unlink()
    with pytest.raises(StorageError, match=r"cases\.jsonl: is missing$"):
        run.cases()
