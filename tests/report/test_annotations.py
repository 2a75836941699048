from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions import HOSTILE, hostile_summary, typical_summary
from made import case, failing, invalid, run
from seatrial.core.case import Case
from seatrial.report.annotations import annotation_lines
from seatrial.report.summary import summary

COMMAND = re.compile(r"::(?P<level>error|warning) (?P<properties>[^:]*)::(?P<message>.*)")


def unescaped(text: str) -> str:
    for escape, character in {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n", "%25": "%"}.items():
        text = text.replace(escape, character)
    return text


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A command as the runner reads it: level, properties, message."""
    found = COMMAND.fullmatch(line)
    assert found, line
    pairs = (pair.partition("=") for pair in found["properties"].split(","))
    return found["level"], {name: unescaped(value) for name, _, value in pairs}, unescaped(found["message"])


def test_cases_that_did_not_pass_are_annotated_errors_first():
    found = [read(line) for line in annotation_lines(typical_summary())]
    assert [(level, properties["title"]) for level, properties, _ in found] == [
        ("error", "bad failed"),
        ("warning", "lost invalid"),
        ("warning", "bare ungraded"),
        ("warning", "late not run"),
        ("warning", "extra failed (reported only)"),
    ]
    assert found[0][2] == "answer: expected 4, got 5 (trial 1)\nanswer: expected 4, got 6 (trial 2)"
    assert [message for _, _, message in found[1:4]] == [
        "fixture: fixture: disk full",
        "nothing required was graded",
        "1 of 1 trials did not run",
    ]


def test_the_place_is_the_case_file_in_the_repository():
    cases = [Case(id="a", path="cases/smoke/a,b.yaml", line=4), Case(id="b", path="cases/b.jsonl"), Case(id="c")]
    data = summary(run(), cases, [failing("a"), failing("b"), failing("c")])
    lines = annotation_lines(data, cases=cases, folder="agents/evals")
    assert lines[0] == (
        "::error file=agents/evals/cases/smoke/a%2Cb.yaml,line=4,title=a failed::answer: expected 4, got 5"
    )
    assert [read(line)[1] for line in lines[1:]] == [
        {"file": "agents/evals/cases/b.jsonl", "title": "b failed"},
        {"title": "c failed"},
    ]


def test_ten_of_a_level_and_the_rest_in_the_tenth():
    cases = [case(f"c{n:02d}") for n in range(25)]
    trials = [failing(f"c{n:02d}") if n < 14 else invalid(f"c{n:02d}") for n in range(24)]
    found = [read(line) for line in annotation_lines(summary(run(), cases, trials))]
    errors, warnings = ([f for f in found if f[0] == level] for level in ("error", "warning"))
    assert (len(errors), len(warnings)) == (10, 10)
    assert errors[-1][1]["title"] == "and 5 more"
    assert errors[-1][2].startswith("5 more cases did not pass")
    assert warnings[-1][1]["title"] == "and 2 more"


def test_ten_are_all_shown():
    trials = [failing(f"c{n}") for n in range(10)]
    found = [read(line) for line in annotation_lines(summary(run(), [case(f"c{n}") for n in range(10)], trials))]
    assert found[-1][1]["title"] == "c9 failed"


def test_a_run_that_passed_has_none():
    assert annotation_lines(summary(run(), [], [])) == []


def test_long_reasons_are_cut():
    (line,) = annotation_lines(summary(run(), [case("a")], [failing("a", reason="x" * 100_000)]))
    assert len(line) < 2_000
    assert "truncated" in line


@pytest.mark.parametrize("text", HOSTILE)
def test_bl_102_data_cannot_leave_its_command(text):
    lines = annotation_lines(hostile_summary(text), cases=[Case(id=text, path=text, line=1)], folder="evals")
    found = [read(line) for line in lines]
    assert [level for level, _, _ in found] == ["error", "error", "warning"]
    assert list(found[0][1]) == ["file", "line", "title"]
    if text.isprintable():
        assert found[0][1]["file"] == str(PurePosixPath("evals", text.replace("\\", "/")))
        assert found[0][1]["title"] == f"{text} failed"
        assert text in found[0][2]


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=()), min_size=1).filter(lambda t: t not in ("crash", "lost", "fine")))
def test_any_text_stays_on_its_line(text):
    for line in annotation_lines(hostile_summary(text)):
        read(line)
        assert not {unicodedata.category(character) for character in line} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
