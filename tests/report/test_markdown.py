from __future__ import annotations

import unicodedata
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions import HOSTILE, decision, gate, hostile_decision, hostile_summary, typical_summary
from made import case, failing, passing, run
from seatrial.core.decision import UsedException
from seatrial.report.markdown import STEP_SUMMARY_BYTES, code, markdown_text
from seatrial.report.summary import summary
from seatrial.verdict.comparison import compare
from seatrial.verdict.sides import side_of_run

OURS = {"h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "br", "em"}


class Page(HTMLParser):
    """A rendered report: its tags, and its texts inside and outside of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.outside = ""
        self.codes: list[str] = []
        self.rows: list[int] = []
        self._in_code = False
        # GitHub's own renderer, with raw HTML let through: what is safe here is safe after its sanitiser
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "code":
            self._in_code = True
            self.codes.append("")
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1

    def handle_endtag(self, tag):
        self._in_code = self._in_code and tag != "code"

    def handle_data(self, data):
        if self._in_code:
            self.codes[-1] += data
        else:
            self.outside += data

    def handle_comment(self, data):
        self.tags.append(("comment", {}))


def assert_only_ours(markdown: str) -> Page:
    page = Page(markdown)
    assert {tag for tag, _ in page.tags} <= OURS
    assert {name for _, attributes in page.tags for name in attributes} <= {"align"}
    return page


def test_a_run_alone_shows_its_verdict_first():
    text = markdown_text(typical_summary())
    assert text.splitlines()[0] == "## ❌ FAILED"
    assert "Build `new`, run `run-1`: 1 of 6 cases passed, 2 failed, 1 invalid, 1 ungraded, 1 not run" in text
    assert "### Gates" not in text
    assert "| suite | passed | pass rate |\n" in text


def test_cases_that_failed_stand_first_with_their_reasons():
    lines = markdown_text(typical_summary()).splitlines()
    at = lines.index("### Cases that did not pass")
    assert lines[at + 2 : at + 7] == [
        "- ❌ `bad` failed (0/2 passed, `default`, medium)",
        "  - `answer`: `expected 4, got 5` (trial 1)",
        "  - `answer`: `expected 4, got 6` (trial 2)",
        "- ❌ `extra` failed (0/1 passed, `extra`, medium, reported only)",
        "  - `answer`: `expected 4, got 5`",
    ]


def test_a_decision_shows_gates_exceptions_and_changed_cases():
    excepted = UsedException(target="case a", reason="known", approver="Ada", expires="2027-01-01", used=True)
    found = decision(
        "block",
        gate("regression.minimum_pass_rate", "block", 0.9, 0.98, counts="9 of 10", reason="too low", cases=("bad",)),
        gate("tools.minimum_tool_precision", "incomplete", None, 0.95, reason="no case expects a tool"),
        gate("review.quality_score_drop_exceeds", limit=0.02, figure=None, applies=False),
        baseline={"build_id": "old", "approver": "Ada"},
        exceptions=(excepted,),
        new=("n1",),
        removed=("r1", "r2"),
        reasons=("regression.minimum_pass_rate: too low",),
    )
    text = markdown_text(typical_summary(), decision=found)
    for said in (
        "## ❌ BLOCK\n",
        "Candidate `new`, `run ids run-1`: 1 of 6 cases passed",
        "Baseline `old`, `approver Ada`",
        "- `regression.minimum_pass_rate: too low`",
        "| ❌ block | `regression.minimum_pass_rate` | 90 % | at least 98 % | `9 of 10` | `too low`<br>`bad` |",
        "| ⚠️ incomplete | `tools.minimum_tool_precision` | none | at least 95 % |  | `no case expects a tool` |",
        "| not applicable | `review.quality_score_drop_exceeds` | none |",
        "| `case a` | used | `known` | `Ada` | `2027-01-01` |",
        "New cases, held to absolute gates only: `n1`",
        "⚠️ Cases of the baseline that did not run: `r1`, `r2`",
    ):
        assert said in text


def test_suites_and_figures_stand_beside_the_baseline():
    cases = [case("a"), case("b"), case("c")]
    before = side_of_run(run(), cases[:2], [passing("a", cost_usd=0.1), passing("b", cost_usd=0.1)])
    trials = [failing("a", cost_usd=0.3), passing("b", cost_usd=0.1), passing("c", cost_usd=0.1)]
    comparison = compare(before, side_of_run(run(), cases, trials))
    text = markdown_text(summary(run(), cases, trials), decision=decision(), comparison=comparison)
    assert "| `default` | 2/3 | 66.7 % | 100 % | -50.0 points | over 2 of 3 cases |" in text
    assert "| performance | cost a trial | $0.17 | 3 of 3 trials | $0.10 | +$0.10 |" in text


def test_the_report_stays_within_the_limit_and_says_so():
    cases = [case(f"case_{n:04d}", 8) for n in range(400)]
    trials = [failing(each.id, n, f"reason {n} " + "é" * 400) for each in cases for n in range(1, 9)]
    data = summary(run(), cases, trials)
    whole = markdown_text(data, limit=10**9)
    assert "and 300 more" in whole
    for limit in (20_000, 100_000, len(whole.encode()) - 1):
        text = markdown_text(data, limit=limit)
        assert limit - 5_000 < len(text.encode()) <= limit
        assert f"limited to {limit:,} bytes" in text.splitlines()[-1]
        assert_only_ours(text)
    assert markdown_text(data, limit=len(whole.encode())) == whole


def test_the_largest_report_fits_into_a_step_summary():
    cases = [case(f"case_{n:04d}", 10) for n in range(200)]
    trials = [failing(each.id, n, f"{n} " + "é" * 1000) for each in cases for n in range(1, 11)]
    gates = [gate(f"g{n}.maximum_own", "block", 1, reason="é" * 1000, cases=("é" * 1000,) * 9) for n in range(300)]
    text = markdown_text(summary(run(), cases, trials), decision=decision("block", *gates))
    assert len(text.encode()) <= STEP_SUMMARY_BYTES
    assert "limited to 1,048,576 bytes" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_bl_102_data_means_nothing_in_markdown(text):
    page = assert_only_ours(markdown_text(hostile_summary(text), decision=hostile_decision(text)))
    assert set(page.rows) <= {3, 4, 5, 6}
    assert page.outside.count("events: ") == page.outside.count("violations: ") == 1
    for part in ("script", "octocat", "evil", "injected", "tada"):
        assert part not in page.outside
    if text.isprintable() and "|" not in text:
        assert page.codes.count(text) > 20


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("|`\\<>[]()@#*_~ \n"), max_size=40))
def test_any_text_is_literal_in_a_table(text):
    row = f"| {code(text)} | x |"
    page = assert_only_ours(f"| a | b |\n| --- | --- |\n{row}\n")
    assert page.rows == [2, 2]
    assert len(row.splitlines()) == 1
    assert not {unicodedata.category(c) for c in row} & {"Cc", "Cf", "Cs"}


@given(st.text("`a b\\é*<&@", min_size=1).filter(str.strip))
def test_a_code_span_shows_its_text_unchanged(text):
    assert Page(code(text)).codes == [text]


@given(st.lists(st.text("`a\\*<", min_size=1), min_size=2, max_size=5))
def test_pipes_stand_between_the_spans(parts):
    page = Page(f"| a |\n| --- |\n| {code('|'.join(parts))} |\n")
    assert page.codes == parts
    assert page.outside.count("|") == len(parts) - 1


def test_more_backticks_than_a_fence_may_have():
    text = "".join("`" * length + "<b>" for length in range(1, 25))
    assert Page(code(text, limit=10_000)).codes == [text]
