from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from decisions import HOSTILE, hostile_summary, typical_summary
from made import case, failing, passing, run
from seatrial.report.junit import junit_text
from seatrial.report.summary import summary

DATA = Path(__file__).parent.parent / "data" / "junit"
SCHEMA = etree.XMLSchema(etree.parse(DATA / "junit-10.xsd"))


def parsed(text: str) -> etree._Element:
    """The root, once the schema has accepted the text."""
    root = etree.fromstring(text.encode("utf-8"))
    assert SCHEMA.validate(root), SCHEMA.error_log
    return root


def element_of(root: etree._Element, name: str) -> etree._Element:
    return next(element for element in root.iter("testcase") if element.get("name") == name)


def test_each_verdict_has_its_element():
    root = parsed(junit_text(typical_summary()))
    found = {element.get("name"): [child.tag for child in element] for element in root.iter("testcase")}
    assert found == {
        "good": ["system-out"],
        "bad": ["failure", "system-out"],
        "lost": ["error", "system-out"],
        "bare": ["skipped", "system-out"],
        "late": ["skipped", "system-out"],
        "extra": ["skipped", "system-out"],
    }


def test_suites_carry_their_counts_and_times():
    root = parsed(junit_text(typical_summary()))
    assert dict(root.attrib) == {"name": "seatrial", "tests": "6", "failures": "1", "errors": "1", "time": "1.250"}
    suites = {suite.get("name"): suite for suite in root}
    counted = [suites["default"].get(key) for key in ("tests", "failures", "errors", "skipped", "time")]
    assert counted == ["5", "1", "1", "2", "1.250"]
    assert suites["default"].get("timestamp") == "2026-01-02T03:04:05.678"
    assert [element_of(root, name).get("time") for name in ("good", "bad", "late")] == ["1.000", "0.250", "0.000"]


def test_a_failure_tells_every_reason_and_the_way_to_the_trace():
    bad = element_of(parsed(junit_text(typical_summary(), run="runs/a b")), "bad")
    assert bad[0].get("message") == "0/2 passed, 2 needed: answer: expected 4, got 5"
    assert bad[0].text == "answer: expected 4, got 5 (trial 1)\nanswer: expected 4, got 6 (trial 2)"
    assert bad[1].text.splitlines()[:3] == ["trial 1: failed", "output: 5", "trace: seatrial show 'runs/a b' 'bad#1'"]


def test_what_only_reports_never_fails_the_file():
    extra = element_of(parsed(junit_text(typical_summary())), "extra")
    assert extra[0].get("message").startswith("reported only, failed: 0/1 passed")
    assert extra[0].text == "answer: expected 4, got 5 (trial 1)"


def test_a_case_that_did_not_run_says_so():
    late = element_of(parsed(junit_text(typical_summary())), "late")
    assert (late[0].get("type"), late[0].text) == ("not run", "1 of 1 trials did not run")


def test_equal_runs_give_equal_files_but_for_times():
    def text(latency: float, **more: str) -> str:
        data = summary(run(**more), [case("a"), case("b")], [passing("b", latency_ms=latency), failing("a")])
        root = parsed(junit_text(data))
        for element in root.iter():
            for name in ("time", "timestamp"):
                element.attrib.pop(name, None)
        return etree.tostring(root, encoding="unicode")

    assert text(12.5, started="2026-01-02T03:04:05Z") == text(99.0, started="2026-02-02T03:04:05Z")


def test_an_empty_run_is_valid():
    root = parsed(junit_text(summary(run(), [], [])))
    assert root.get("tests") == "0"


@pytest.mark.parametrize("text", HOSTILE)
def test_bl_102_data_is_text_in_junit(text):
    written = junit_text(hostile_summary(text), run=text)
    root = parsed(written)
    known = {"testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped"}
    assert {element.tag for element in root.iter()} <= known | {"system-out"}
    assert not {c for c in written if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn")} - {"\n"}
    if text.isprintable():
        named = element_of(root, text)
        assert text in named[0].text
        assert f"output: {text}" in named[1].text.splitlines()


def test_bl_102_what_xml_cannot_hold_is_escaped_visibly():
    text = "\x00\x1b\x0b\ufffe\uffff\ud800"
    root = parsed(junit_text(hostile_summary(text)))
    assert root[0].get("name") == r"\x00\x1b\x0b\ufffe\uffff\ud800"


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=()), min_size=1).filter(lambda t: t not in ("crash", "lost", "fine")))
def test_any_text_gives_a_valid_file(text):
    parsed(junit_text(hostile_summary(text), run=text))


def test_the_schema_refuses_what_is_no_junit():
    assert not SCHEMA.validate(etree.fromstring("<testsuites><testcase/></testsuites>"))
