from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from made import broken, case, failing, grade, invalid, passing, raising, record, run
from seatrial.core.case import Case
from seatrial.core.trace import (
    Approval,
    ErrorEvent,
    Fault,
    Guardrail,
    Handoff,
    Message,
    ModelCallEvent,
    Retrieval,
    SafetyEvent,
    ToolCallEvent,
    Trace,
    Usage,
)
from seatrial.errors import Diagnostic
from seatrial.report.summary import summary
from seatrial.report.terminal import (
    Progress,
    console,
    print_cases,
    print_comparison,
    print_diagnostics,
    print_runs,
    print_settings,
    print_summary,
    print_trace,
)
from seatrial.verdict.comparison import compare
from seatrial.verdict.harness_results import HarnessResult
from seatrial.verdict.side_files import side_of_harness

HOSTILE = ["[/INST] x[0] [bold red]hi[/]", "\x1b[2J\x1b]0;t\x07", "\u202egnp.exe", "\ud835 lone", "a\r\nb\tc"]


def shown(show, width: int = 100, encoding: str = "utf-8") -> str:
    """What `show(console)` writes to something that is no terminal."""
    raw = io.BytesIO()
    target = console(io.TextIOWrapper(raw, encoding=encoding, write_through=True, newline=""))
    target.width = width
    show(target)
    return raw.getvalue().decode(encoding)


def summary_text(cases, trials, *, verbosity: int = 0, width: int = 100, encoding: str = "utf-8", **more) -> str:
    data = summary(run(**more), cases, trials)
    return shown(lambda c: print_summary(c, data, verbosity=verbosity), width, encoding)


def assert_harmless(text: str) -> None:
    steering = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"}
    assert not steering


# --- the summary -----------------------------------------------------------------------------------------------------


def test_failures_come_first_with_reason_and_trials():
    text = summary_text([case("good"), case("bad", 3)], [passing("good"), *(failing("bad", n) for n in (1, 2, 3))])
    first, reason = text.splitlines()[1:3]
    assert first.startswith("FAILED  bad  0/3 passed")
    assert reason.split() == ["answer", "expected", "4,", "got", "5", "trials", "1-3"]
    assert text.splitlines()[-1] == "FAILED  1 of 2 cases passed · 1 failed · 1 of 4 trials passed"


def test_a_quiet_summary_is_one_line():
    text = summary_text([case("a"), case("b")], [passing("a"), raising("b")], verbosity=-1)
    assert text == "FAILED  1 of 2 cases passed · 1 failed · 1 raised\n"


def test_bl_050_the_headline_shows_the_error():
    text = summary_text([case("a"), case("b")], [passing("a"), raising("b")])
    assert "1 of 2 cases passed · 1 failed · 1 raised" in text
    assert "50.0 % [9.5, 90.5] · 1 of 2 valid trials, 2 of 2 cases" in text
    assert "100 %" not in text.replace("100 % [20.7", "")


def test_bl_052_means_are_shown_with_their_counts():
    cases = [case(name) for name in "abcd"]
    half = grade("h", "pass", score=0.5)
    trials = [passing("a", grades=(grade("g"), half))]
    trials += [
        record(name, 1, "invalid", invalid_reason="grader", grades=(half,), grader_failures=(broken("g"),))
        for name in "bcd"
    ]
    rows = [line.split() for line in summary_text(cases, trials).splitlines()]
    assert ["g", "1.00", "1", "of", "4", "1", "0", "3"] in rows
    assert ["h", "0.50", "4", "of", "4", "4", "0", "0"] in rows
    assert "b#1, c#1, d#1" in summary_text(cases, trials)


def test_bl_056_outputs_and_reasons_of_all_trials_can_be_seen():
    trials = [failing("a", 1, "too short", output="no"), failing("a", 2, "off topic", output="weather")]
    text = summary_text([case("a", 2)], trials, verbosity=1)
    for said in ("too short  trial 1", "off topic  trial 2", "trial 1  failed  no", "trial 2  failed  weather"):
        assert said in text


def test_unknown_costs_are_a_lower_bound():
    text = summary_text([case("a"), case("b")], [passing("a", cost_usd=0.5), passing("b")])
    assert "at least $0.50, 1 of 2 unknown" in text


def test_nothing_valid_shows_no_rate():
    text = summary_text([case("a")], [invalid("a")])
    assert "none: no valid trial" in text
    assert "nan" not in text.lower()
    assert text.splitlines()[-1] == "INCOMPLETE  0 of 1 case passed · 1 invalid"


def test_what_does_not_gate_is_said_in_the_verdict():
    text = summary_text([case("a"), case("b", suite="extra")], [passing("a"), failing("b")], gating={"extra": False})
    assert text.splitlines()[-1] == "PASS  1 of 2 cases passed · 1 failed (1 reported only)"


def test_a_run_that_was_interrupted_says_so():
    assert "the run ended interrupted: 1 of 2" in summary_text([case("a", 2)], [passing("a")], status="interrupted")


def test_long_runs_are_cut_until_asked_for_all():
    cases = [case(f"c{n:03d}") for n in range(100)]
    trials = [failing(f"c{n:03d}") for n in range(100)]
    short, whole = (summary_text(cases, trials, verbosity=verbosity) for verbosity in (0, 1))
    assert "c099" not in short
    assert "and 60 more" in short
    assert "c099" in whole


def test_grades_head_the_columns_in_the_widest_form_that_fits():
    grades = tuple(grade(f"my_module:grader_{n}") for n in range(8))
    wrong = (grade("my_module:grader_0", "fail", "no"), *grades[1:])
    trials = [passing("first_case", grades=grades), record("other_case", 1, "failed", grades=wrong)]
    cases = [case("first_case"), case("other_case")]
    wide, middle, narrow = (summary_text(cases, trials, width=width) for width in (240, 60, 40))
    assert "passed  my_module:grader_0  my_module:grader_1" in wide
    assert "passed  1  2  3  4  5  6  7  8" in middle
    assert "  1  my_module:grader_0" in middle
    told = narrow[narrow.index("Cases") : narrow.index("Graders")]
    assert " ".join(told.split()).endswith("✓ first_case 1/1 ✓ 8")
    assert "other_case" in told


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_but_the_verdict(width):
    cases = [case(f"refund_requires_supervisor_{n:03d}", 3) for n in range(3)]
    names = ("outcome", "required_tools", "response.required_concepts", "my_module:polite", "handoff")
    grades = tuple(grade(name) for name in names)
    trials = [passing(each.id, n, grades=grades) for each in cases for n in (1, 2, 3)]
    text = summary_text(cases, trials, width=width)
    assert max(len(line) for line in text.splitlines()[:-1]) <= width
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_the_way_to_the_trace_is_told_when_the_run_has_a_name():
    data = summary(run(), [case("a[n=1 2]")], [failing("a[n=1 2]")])
    text = shown(lambda c: print_summary(c, data, run="latest"))
    assert "seatrial show latest 'a[n=1 2]#1'" in text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252"])
def test_bl_100_data_is_shown_literally_in_the_summary(text, encoding):
    named = case(text)
    trials = [
        record(
            text,
            1,
            "failed",
            output=text,
            tools={text: 1},
            handoffs=((text, text),),
            grades=(grade(text, "fail", text), grade("g" + text, "abstain", text)),
            grader_failures=(broken("h" + text, "E", text),),
        ),
        raising("crash", message=text),
    ]
    said = summary_text([named, case("crash", suite=text)], trials, verbosity=1, encoding=encoding)
    assert_harmless(said)
    if text.startswith("["):
        assert said.count(text) > 5
    if text.startswith("\x1b"):
        assert "\\x1b[2J\\x1b]0;t\\x07" in said


@given(st.text(st.characters(exclude_categories=()), min_size=1), st.sampled_from(["utf-8", "ascii"]))
@settings(max_examples=40)
def test_bl_100_no_data_reaches_the_terminal_as_control_bytes(text, encoding):
    trials = [record(text, 1, "failed", output=text, grades=(grade(text, "fail", text),)), passing("ok")]
    assert_harmless(
        summary_text([case(text), case("ok")], trials, verbosity=1, encoding=encoding) if text != "ok" else ""
    )
    trace = Trace(events=(Message(number=1, role=text, content=text),), log=text)
    assert_harmless(shown(lambda c: print_trace(c, None, trials[0], trace), encoding=encoding))


def test_without_a_terminal_there_is_no_escape_byte_at_all():
    assert "\x1b" not in summary_text([case("a")], [failing("a")])


def test_no_color_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    raw = io.StringIO()
    target = Console(file=raw, force_terminal=True, width=80)
    print_summary(target, summary(run(), [case("a")], [failing("a")]))
    assert "\x1b[31m" not in raw.getvalue()


# --- one trial -------------------------------------------------------------------------------------------------------

EVENTS = (
    Message(number=1, role="user", content="Refund order O-100.\nIt is damaged."),
    ModelCallEvent(number=2, agent="refund", model="m1", usage=Usage(input=1200, output=30)),
    ToolCallEvent(number=3, agent="refund", name="look_up", arguments={"order_id": "O-1"}, result={"total": 750}),
    ToolCallEvent(number=4, name="pay", arguments="{bad", malformed=True, state="invalid_arguments", error="no object"),
    ToolCallEvent(number=5, name="pay", arguments={}, asked={"n": 2}, state="failed", error="TimeoutError: late"),
    Approval(
        number=6, action="pay", arguments={"n": 1}, decision="edited", approved_arguments={"n": 2}, approver="boss"
    ),
    Handoff(number=7, source="refund", target="supervisor", reason="above limit", context={"order_id": "O-1"}, turn=2),
    Handoff(number=8, source="refund", target="nobody", completed=False, turn=2),
    Retrieval(number=9, query="limits", contexts=("500 dollars",), turn=2),
    Guardrail(number=10, name="tone", passed=False, details={"word": "no"}, turn=2),
    Fault(number=11, tool="pay", fault="timeout", call=5, turn=2),
    SafetyEvent(number=12, event="secret_exposure", evidence={"secret": "card"}, turn=2),
    ErrorEvent(number=13, type="ValueError", message="bad", turn=2),
)


def trace_text(trial, events=EVENTS, about: Case | None = None, encoding: str = "utf-8", **more) -> str:
    return shown(lambda c: print_trace(c, about, trial, Trace(events=events, **more)), encoding=encoding)


def test_a_trace_reads_as_what_happened():
    text = trace_text(passing("a", output="done", outcome={"status": "paid"}))
    for said in (
        "Refund order O-100.",
        "model m1 · 1,200 in, 30 out tokens",
        'look_up(order_id="O-1")',
        '→ {"total": 750}',
        'pay("{bad")  malformed arguments',
        "→ invalid arguments: no object",
        "asked pay(n=2)",
        "→ failed: TimeoutError: late",
        "asks to approve pay(n=1)",
        "→ edited by boss: pay(n=2)",
        "hands over to supervisor",
        "reason above limit",
        'context {"order_id": "O-1"}',
        "tried to hand over to nobody",
        "context not observed",
        'looked up "limits"',
        "500 dollars",
        "guardrail tone: stopped it",
        "injected fault: timeout at pay (event 5)",
        "safety: secret_exposure (seen by the harness)",
        "ValueError: bad",
        "turn 2",
        'status  "paid"',
    ):
        assert said in text


def test_grades_point_to_the_events_they_rest_on():
    trial = record(
        "a", 1, "failed", grades=(grade("ok"), grade("required_tools", "fail", "wrong order", evidence=(3,)))
    )
    text = trace_text(trial)
    assert "^ required_tools" in text
    assert "wrong order  event 3" in text
    assert text.index("✗  required_tools") < text.index("✓  ok")


def test_a_crash_shows_its_traceback_and_message():
    text = trace_text(raising("a", message="token expired"))
    assert "raised ValueError: token expired" in text
    assert "Traceback ..." in text
    assert "agent error" in text


def test_what_was_not_observed_is_said():
    text = trace_text(passing("a"), events=())
    assert "none were observed" in text
    assert "not observed" in text
    assert "cost unknown" in text


def test_the_input_and_risk_come_from_the_case():
    about = Case(id="a", risk="critical", description="About refunds.", input={"user_id": "c-1", "message": "hi"})
    text = trace_text(passing("a"), about=about)
    assert "critical" in text
    assert "About refunds." in text
    assert 'user_id  "c-1"' in text


def test_a_huge_output_is_cut():
    trial = passing("a", output="x" * 50_000_000)
    text = trace_text(trial, events=(Message(number=1, role="assistant", content="y" * 50_000_000),))
    assert text.count("truncated, 50.0 MB") == 2
    assert len(text) < 20_000


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_bl_100_data_is_shown_literally_in_a_trace(text, encoding):
    events = (
        Message(number=1, role=text, content=text),
        ModelCallEvent(number=2, agent=text, model=text, error=text),
        ToolCallEvent(number=3, name=text, arguments={text: text}, asked={text: 1}, told=text, result=text),
        ToolCallEvent(number=4, name=text, arguments=text, malformed=True, state="failed", error=text),
        Approval(number=5, action=text, arguments={text: text}, decision="denied", approver=text),
        Handoff(number=6, source=text, target=text, reason=text, context={text: text}),
        Retrieval(number=7, query=text, contexts=(text,)),
        Guardrail(number=8, name=text, passed=True, details=text),
        Fault(number=9, tool=text, fault=text, details=text),
        SafetyEvent(number=10, event=text, evidence=text),
        ErrorEvent(number=11, type=text, message=text),
    )
    trial = raising(text, message=text).model_copy(
        update={"output": text, "outcome": {text: text}, "output_file": text, "grades": (grade(text, "fail", text),)}
    )
    said = trace_text(trial, events, encoding=encoding, log=text)
    assert_harmless(said)
    if text.startswith("["):
        assert said.count(text) > 20


# --- comparison, diagnostics, lists, progress ------------------------------------------------------------------------


def comparison(**changes):
    base = [HarnessResult(name=n, passed=b, detail="ok" if b else "got 4") for n, (b, _) in changes.items()]
    cand = [HarnessResult(name=n, passed=c, detail="ok" if c else "raised E: x") for n, (_, c) in changes.items()]
    return compare(side_of_harness(base, "v1"), side_of_harness(cand, "v2"))


def test_a_comparison_is_one_line_a_case_with_both_reasons():
    found = comparison(median=(False, True), empty=(True, False), same=(True, True))
    lines = shown(lambda c: print_comparison(c, found), width=40).splitlines()
    assert lines[3].split(maxsplit=2) == ["broke", "empty", "passed (ok) → failed (raised E: x) · deterministic"]
    assert lines[4].startswith("fixed")
    assert "median" in lines[4]
    assert "failed (got 4) → passed (ok)" in lines[4]
    assert lines[-1] == "FAILED  1 broke · 1 fixed · 1 same"


def test_a_quiet_comparison_is_its_verdict():
    assert shown(lambda c: print_comparison(c, comparison(a=(True, True)), verbosity=-1)) == "PASS  1 same\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_bl_100_data_is_shown_literally_in_a_comparison(text):
    sides = [side_of_harness([HarnessResult(name=text, passed=passed, detail=text)], text) for passed in (True, False)]
    assert_harmless(shown(lambda c: print_comparison(c, compare(*sides))))


def test_diagnostics_are_lines_that_editors_follow():
    found = [
        Diagnostic("unknown-key", "unknown key 'expcted'", "cases/a.yaml", 12, 5, "did you mean 'expected'?"),
        Diagnostic("empty-file", "there is no case in it \x1b[2J", "cases/b.yaml", severity="warning"),
    ]
    assert shown(lambda c: print_diagnostics(c, found), width=40).splitlines() == [
        "cases/a.yaml:12:5: error: unknown key 'expcted'  [unknown-key]",
        "    did you mean 'expected'?",
        "cases/b.yaml: warning: there is no case in it \\x1b[2J  [empty-file]",
    ]


def test_lists_show_cases_runs_and_settings_literally():
    cases = [Case(id="a", suite="smoke", description="About\nrefunds [bold]", tags=("x",))]
    text = shown(lambda c: print_cases(c, cases))
    assert "About refunds [bold]  #x" in text
    assert text.endswith("1 case\n")
    assert "out of budget" in shown(lambda c: print_runs(c, [("r1", "dev", "out_of_budget", 3, "today")]))
    assert shown(lambda c: print_runs(c, [])) == "no runs yet\n"
    assert '"\\u001b[2J"' in shown(lambda c: print_settings(c, [("agent", "\x1b[2J", "--agent")]))


def progress_text(trials, **how) -> str:
    def show(target):
        with Progress(target, len(trials), **how) as bar:
            for done, trial in enumerate(trials, start=1):
                bar.update(trial, done, len(trials))

    return shown(show)


def test_without_a_terminal_progress_is_plain_lines():
    trials = [passing("a"), raising("b"), passing("c")]
    assert progress_text(trials).splitlines() == [
        "[1/3]  passed    a#1",
        "[2/3]  failed    b#1  raised ValueError: no data",
        "[3/3]  passed    c#1",
    ]


def test_long_runs_keep_their_progress_short_but_tell_every_failure():
    trials = [failing("bad") if n == 777 else passing(f"c{n}") for n in range(1000)]
    lines = progress_text(trials).splitlines()
    assert len(lines) == 51
    assert any("bad#1" in line for line in lines)
    assert len(progress_text(trials, verbose=True).splitlines()) == 1000


def test_quiet_progress_shows_nothing():
    assert progress_text([raising("b")], quiet=True) == ""


def test_bl_060_display_settings_change_no_verdict():
    cases, trials = [case("a"), case("b"), case("c")], [passing("a"), raising("b"), passing("c")]
    data = summary(run(), cases, trials)
    for quiet, verbosity in ((True, -1), (False, 0), (False, 1)):
        progress_text(trials, quiet=quiet)
        shown(lambda c, v=verbosity: print_summary(c, data, verbosity=v))
        assert summary(run(), cases, trials) == data
        assert [row["verdict"] for row in data["cases"]] == ["passed", "failed", "passed"]


def test_on_a_terminal_progress_is_a_bar_that_goes_away():
    raw = io.StringIO()
    target = Console(file=raw, force_terminal=True, width=80)
    with Progress(target, 2) as bar:
        bar.update(passing("a"), 1, 2)
        bar.update(failing("b[bold]"), 2, 2)
    assert "1 passed, 1 failed" in raw.getvalue()
    assert "b[bold]" not in raw.getvalue()
