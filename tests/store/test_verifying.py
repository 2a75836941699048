"""What can be told from a run folder alone: it is as its run wrote it, or the place where it is not is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from made import failing, passing
from packed import edit_traces
from seatrial.core.case import Case
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import TrialRecord
from seatrial.errors import StorageError
from seatrial.store.frames import TRACES
from seatrial.store.rundir import RunFolder, RunWriter, line_digest
from seatrial.store.verifying import verify

INFO = RunInfo(run_id="r1", build_id="b", cases={"a": "sha256:a", "b": "sha256:b"}, trials={"a": 3, "b": 1})


def of(record: TrialRecord, **more: Any) -> TrialRecord:
    return record.model_copy(update={"case_digest": f"sha256:{record.case_id}"} | more)


USUAL = (
    of(passing("a", 1)),
    of(failing("a", 2), stop_reason=StopReason.TIMEOUT),
    of(passing("a", 2), attempt=2),
    of(passing("b", 1)),
    of(failing("a", 3)),
)


def written(folder: Path, *records: TrialRecord, status: RunStatus = RunStatus.FINISHED) -> RunFolder:
    writer = RunWriter.create(folder / "run", INFO, [Case(id="a"), Case(id="b")])
    for record in records or USUAL:
        writer.write(record, Trace(output="x" * record.trial_index))
    writer.finish(INFO.model_copy(update={"status": status}))
    return RunFolder(folder / "run")


def lines_of(run: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.folder / "trials.jsonl").read_text().splitlines()]


def rewrite(run: RunFolder, lines: list[dict[str, Any]], *, linked: bool = False) -> None:
    """Put these lines in place of the run's; `linked`: with a chain of their own, as a forger would."""
    texts = []
    for line in lines:
        if linked and texts:
            line["previous"] = line_digest(texts[-1].encode())
        texts.append(json.dumps(line))
    (run.folder / "trials.jsonl").write_text("".join(text + "\n" for text in texts))


def test_what_a_run_wrote_is_clean_retries_included(tmp_path: Path) -> None:
    found = verify(written(tmp_path))
    assert found.problems == ()
    assert [str(record.key) for record in found.records] == ["a#1", "a#2", "a#2", "b#1", "a#3"]
    assert [case.id for case in found.cases] == ["a", "b"]


def test_a_run_that_was_cut_off_is_no_fault_of_its_folder(tmp_path: Path) -> None:
    run = written(tmp_path, USUAL[0], status=RunStatus.RUNNING)
    path = run.folder / "trials.jsonl"
    path.write_bytes(path.read_bytes() + b'{"run_id": "r1", "case')
    info = json.loads((run.folder / "run.json").read_text()) | {"chain_end": None}
    (run.folder / "run.json").write_text(json.dumps(info))
    found = verify(run)
    assert (found.problems, len(found.records)) == ((), 1)


def _flip(lines: list[dict[str, Any]]) -> None:
    lines[-1]["status"] = "passed"


def _take_last(lines: list[dict[str, Any]]) -> None:
    del lines[-1]


def _take_first(lines: list[dict[str, Any]]) -> None:
    del lines[0]


def _swap(lines: list[dict[str, Any]]) -> None:
    lines[0], lines[3] = lines[3], lines[0]


def _foreign(lines: list[dict[str, Any]]) -> None:
    lines[2]["run_id"] = "r2"


def _edited(lines: list[dict[str, Any]]) -> None:
    lines[0]["case_digest"] = "sha256:other"


def _unknown(lines: list[dict[str, Any]]) -> None:
    lines[0]["case_id"] = "z"


def _twice(lines: list[dict[str, Any]]) -> None:
    lines[2]["attempt"] = 1


def _beyond(lines: list[dict[str, Any]]) -> None:
    lines[3]["trial_index"] = 2


def _no_trace(lines: list[dict[str, Any]]) -> None:
    lines[3]["trace_at"] = 10**9


def _other_trace(lines: list[dict[str, Any]]) -> None:
    lines[3]["trace_at"] = lines[0]["trace_at"]


def _other_build(lines: list[dict[str, Any]]) -> None:
    lines[0]["build_id"] = "other"


def _other_reason(lines: list[dict[str, Any]]) -> None:
    lines[-1].update(status="invalid", invalid_reason="fixture")


def _no_output(lines: list[dict[str, Any]]) -> None:
    lines[0]["output_file"] = "outputs/gone.txt"


def _not_a_record(lines: list[dict[str, Any]]) -> None:
    lines[1]["status"] = "splendid"


TOUCHED: list[tuple[Callable[[list[dict[str, Any]]], None], str]] = [
    (_flip, "trials.jsonl:5: a#3 is passed, which does not follow"),
    (_take_last, "trials.jsonl: does not end as the run wrote it"),
    (_take_first, "trials.jsonl:1: does not follow the line before"),
    (_swap, "trials.jsonl:1: does not follow the line before"),
    (_foreign, "trials.jsonl:3: is of run 'r2', not of 'r1'"),
    (_edited, "trials.jsonl:1: a#1 is of another version of its case"),
    (_unknown, "trials.jsonl:1: 'z' is none of the run's cases"),
    (_twice, "trials.jsonl:3: attempt 1 of a#2 stands there twice"),
    (_beyond, "trials.jsonl:4: b#2 was not planned"),
    (_no_trace, "trials.jsonl:4: the trace of b#1 is missing"),
    (_other_trace, "trials.jsonl:4: the trace of b#1 is not where the record says"),
    (_other_build, "trials.jsonl:1: a#1 is of build 'other', not of 'b'"),
    (_other_reason, "trials.jsonl:5: a#3 is invalid, which does not follow"),
    (_no_output, "trials.jsonl:1: the output of a#1 is missing: outputs/gone.txt"),
    (
        _not_a_record,
        "trials.jsonl:2: cannot be read: status: should be 'passed', 'failed', 'ungraded' or 'invalid', not",
    ),
]


@pytest.mark.parametrize(("touch", "said"), TOUCHED, ids=[touch.__name__ for touch, _ in TOUCHED])
def test_what_was_touched_is_named_with_its_place(touch: Any, said: str, tmp_path: Path) -> None:
    run = written(tmp_path)
    lines = lines_of(run)
    touch(lines)
    rewrite(run, lines)
    assert said in "\n".join(verify(run).problems)


@pytest.mark.parametrize("touch", [_flip, _foreign, _edited, _unknown, _twice, _beyond, _other_build, _take_first])
def test_a_forged_chain_does_not_hide_it(touch: Any, tmp_path: Path) -> None:
    run = written(tmp_path)
    lines = lines_of(run)
    touch(lines)
    rewrite(run, lines, linked=True)
    assert verify(run).problems


def test_an_edited_trace_is_named_and_read_by_nobody(tmp_path: Path) -> None:
    run = written(tmp_path)
    edit_traces(run.folder, lambda lines: lines.__setitem__(-1, lines[-1].replace('"xxx"', '"xyx"')))
    said = "the trace of a#3 is not as the run wrote it (its record has another digest)"
    assert verify(run).problems == (f"trials.jsonl:5: {said}",)
    with pytest.raises(StorageError, match="the trace of a#3 is not as it was written"):
        run.trace(run.records()[-1])
    with pytest.raises(StorageError, match="the trace of a#3 is not as it was written"):
        list(run.stored())


def test_a_folder_of_a_version_without_digests_of_traces_is_clean(tmp_path: Path) -> None:
    run = written(tmp_path)
    lines = lines_of(run)
    for line in lines:
        del line["trace_digest"]
    rewrite(run, lines, linked=True)
    path = run.folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chain_end": None}))
    assert verify(run).problems == ()
    assert len(list(run.stored())) == 5


LARGE = "word " * 20_000


@pytest.mark.parametrize("outputs", [(LARGE,), (LARGE, "end")])
@pytest.mark.parametrize("text", ["other", ""])
def test_a_changed_output_is_named(tmp_path: Path, outputs: tuple[str, ...], text: str) -> None:
    writer = RunWriter.create(tmp_path / "run", INFO, [Case(id="a"), Case(id="b")])
    record = writer.write(of(passing("a", 1), output=LARGE), Trace(output=LARGE, outputs=outputs))
    writer.finish(INFO.model_copy(update={"status": RunStatus.FINISHED}))
    run = RunFolder(tmp_path / "run")
    assert verify(run).problems == ()
    (run.folder / str(record.output_file)).write_text(text)
    assert verify(run).problems == (
        f"trials.jsonl:1: the output of a#1 is not as the run wrote it: {record.output_file}",
    )


def test_only_trials_of_the_run_and_its_cases_are_evidence(tmp_path: Path) -> None:
    run = written(tmp_path)
    lines = lines_of(run)
    _foreign(lines)
    lines[3]["case_id"] = "z"
    rewrite(run, lines)
    assert [str(record.key) for record in verify(run).records] == ["a#1", "a#2", "a#3"]


def test_cases_are_those_of_the_run(tmp_path: Path) -> None:
    run = written(tmp_path)
    path = run.folder / "cases.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0].replace('"a"', '"a","risk":"critical"'))
    assert verify(run).problems == (
        "cases.jsonl: is not as the run wrote it (run.json has another digest)",
        "cases.jsonl: lacks cases of run.json: b",
    )


@pytest.mark.parametrize("name", ["cases.jsonl", "trials.jsonl", TRACES])
@pytest.mark.parametrize("content", [None, "", "{}\n", "not json\n", "\x00\xff"])
def test_a_damaged_file_is_a_problem_and_no_error(name: str, content: str | None, tmp_path: Path) -> None:
    run = written(tmp_path)
    path = run.folder / name
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="latin-1")
    found = verify(run)
    assert found.problems
    assert {record.case_id for record in found.records} <= {case.id for case in found.cases}


def test_a_run_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    run = written(tmp_path)
    (run.folder / "run.json").write_text("{}")
    with pytest.raises(StorageError, match=r"run\.json"):
        verify(run)


def test_graded_again_on_another_input_every_grade_abstains(tmp_path: Path) -> None:
    said = {"status": "invalid", "invalid_reason": "unobserved", "stop_reason": "timeout", "grades": []}
    run = written(tmp_path)
    lines = lines_of(run)
    lines[-1].update(said)
    rewrite(run, lines, linked=True)
    assert any("a#3 is invalid" in problem for problem in verify(run).problems)
    info = json.loads((run.folder / "run.json").read_text()) | {"regraded_from": "r0"}
    (run.folder / "run.json").write_text(json.dumps(info))
    assert not any("a#3 is invalid" in problem for problem in verify(run).problems)
