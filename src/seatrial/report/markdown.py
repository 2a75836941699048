"""A run, and what a gate decided about it, as Markdown: GitHub's step summary and anything else that reads GFM.

The verdict comes first. Data stands in code spans and nowhere else: no Markdown, HTML, link, image, mention or
reference in it means anything there, and control and invisible characters are escaped.

GitHub refuses a step summary above 1 MiB whole. Where there is more to tell, lines are left out from the end and the
last line says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.core.decision import Decision, GateResult
from seatrial.core.encoding import shortened
from seatrial.report.literal import lines
from seatrial.report.metric_text import difference_text, figure_of, limit_of
from seatrial.report.reasons import case_reasons, trial_list, verdict_word
from seatrial.report.release_rows import FigureLine, SuiteLine, build_parts, figure_lines, suite_lines
from seatrial.report.replays import cassette_note
from seatrial.report.screen import percent, times
from seatrial.verdict.comparison import Comparison

__all__ = ["STEP_SUMMARY_BYTES", "code", "markdown_text"]

Row = Mapping[str, Any]

STEP_SUMMARY_BYTES = 1024 * 1024
"""What GitHub takes of a step."""
CASES_SHOWN = 100
REASONS_SHOWN = 10
NAMES_SHOWN = 20
SHOWN = 500
"""Characters of one piece of data."""

SIGNS = {"pass": "✅", "passed": "✅", "failed": "❌", "block": "❌"}
DOUBT = "⚠️"
"""The sign of everything that is neither."""


def markdown_text(
    summary: Row,
    *,
    decision: Decision | None = None,
    comparison: Comparison | None = None,
    limit: int = STEP_SUMMARY_BYTES,
) -> str:
    """The content of `results.json` as a report, at most `limit` bytes of UTF-8.

    With a decision the verdict is the gate's, with its reasons, gates and exceptions; with the comparison that it rests
    on, suites and figures stand beside the baseline's.
    """
    text = [*_head(summary, decision), *_suites(suite_lines(summary, comparison))]
    if decision is not None:
        text += [*_gates(decision.gates), *_exceptions(decision), *_changes(decision)]
    text += [*_failures(summary), *_figures(figure_lines(summary, comparison)), *_problems(summary)]
    return _fitting(text, limit)


def code(text: str, limit: int = SHOWN) -> str:
    """Data as a code span on one line, or several joined by `<br>`; nothing for empty text.

    The fence is the shortest run of backticks that does not occur in the text. A pipe stands between two spans as a
    character reference: inside of one it would end a table's cell.
    """
    return "<br>".join(filter(None, (_line(line) for line in lines(shortened(text, limit)))))


def _line(text: str) -> str:
    return "&#124;".join(_span(part) for part in text.split("|"))


def _span(text: str) -> str:
    if not text.strip(" "):
        return ""
    runs = {len(run) for run in re.findall("`+", text)}
    fence = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _codes(names: Sequence[str], shown: int = NAMES_SHOWN) -> str:
    rest = len(names) - shown
    return ", ".join(code(name) for name in names[:shown]) + (f" and {rest:,} more" if rest > 0 else "")


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    """A table; a column whose name begins with `>` is aligned right."""
    yield "| " + " | ".join(name.removeprefix(">") for name in columns) + " |"
    yield "|" + "|".join(" ---: " if name.startswith(">") else " --- " for name in columns) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _sign(verdict: str) -> str:
    return SIGNS.get(verdict, DOUBT)


# --- verdict ---------------------------------------------------------------------------------------------------------


def _head(summary: Row, decision: Decision | None) -> Iterable[str]:
    verdict = str(summary["figures"]["verdict"] if decision is None else decision.verdict)
    yield f"## {_sign(verdict)} {verdict.upper()}"
    yield ""
    if decision is None:
        yield f"Build {code(summary['times']['build_id'])}, run {code(summary['times']['run_id'])}: {_counts(summary)}"
    else:
        yield f"Candidate {_build(decision.candidate)}: {_counts(summary)}"
        yield ""
        yield f"Baseline {_build(decision.baseline)}"
    yield ""
    note = cassette_note(summary)
    if note:
        yield f"{DOUBT} {note}" if summary["times"]["cassettes"] == "replay" else note
        yield ""
    reasons = decision.reasons if decision is not None else ()
    for reason in reasons:
        yield f"- {code(reason)}"
    if reasons:
        yield ""


def _build(build: Row | None) -> str:
    return ", ".join(code(part) for part in build_parts(build))


def _counts(summary: Row) -> str:
    cases, trials = summary["figures"]["cases"], summary["figures"]["trials"]
    other = [f"{cases[word]:,} {verdict_word(word)}" for word in ("failed", "invalid", "ungraded", "not_run")]
    told = [f"{cases['passed']:,} of {times(cases['total'], 'case')} passed"]
    told += [said for said in other if not said.startswith("0 ")]
    if trials["planned"] != cases["total"]:
        told.append(f"{trials['passed']:,} of {times(trials['planned'] - trials['saved'], 'trial')} passed")
    return ", ".join(told)


# --- what the gate decided -------------------------------------------------------------------------------------------


def _gates(gates: Sequence[GateResult]) -> Iterable[str]:
    if not gates:
        return
    yield "### Gates"
    yield ""
    columns = ("", "gate", ">figure", ">limit", "counted over", "why")
    yield from _table(columns, [_gate(gate) for gate in gates])


def _gate(gate: GateResult) -> list[str]:
    word = "not applicable" if not gate.applies else f"{_sign(gate.verdict)} {gate.verdict}"
    figure = figure_of(gate) or "none"
    why = [code(gate.reason)] if gate.reason else []
    why += ["excepted"] if gate.excepted else []
    why += [_codes(gate.cases, 5)] if gate.cases else []
    limit = limit_of(gate)
    return [word, code(gate.name), figure, limit, code(gate.counts), "<br>".join(why)]


def _exceptions(decision: Decision) -> Iterable[str]:
    if not decision.exceptions:
        return
    yield "### Exceptions"
    yield ""
    rows = [
        [
            code(one.target),
            "used" if one.used else f"{DOUBT} not used" + (f": {code(one.note)}" if one.note else ""),
            code(one.reason),
            code(one.approver),
            code(one.expires),
        ]
        for one in decision.exceptions
    ]
    yield from _table(("exception", "", "reason", "approver", "expires"), rows)


def _changes(decision: Decision) -> Iterable[str]:
    changes = {
        "New cases, held to absolute gates only": decision.new,
        "Edited cases, held to absolute gates only": decision.edited,
        f"{DOUBT} Cases of the baseline that did not run": decision.removed,
    }
    for said, names in changes.items():
        if names:
            yield f"{said}: {_codes(names)}"
            yield ""


# --- what the run shows ----------------------------------------------------------------------------------------------


def _failures(summary: Row) -> Iterable[str]:
    wrong = [case for case in summary["cases"] if case["verdict"] != "passed"]
    wrong.sort(key=lambda case: (case["verdict"] != "failed", not case["gate"]))
    if not wrong:
        return
    yield "### Cases that did not pass"
    yield ""
    for case in wrong[:CASES_SHOWN]:
        yield from _case(case)
    if len(wrong) > CASES_SHOWN:
        yield f"- and {len(wrong) - CASES_SHOWN:,} more"
    yield ""


def _case(case: Row) -> Iterable[str]:
    need = f", {case['required']} needed" if case["required"] != case["trials"] else ""
    notes = [f"{case['passes']}/{case['trials']} passed{need}", code(case["suite"]), case["risk"]]
    notes += [] if case["gate"] else ["reported only"]
    yield f"- {_sign(case['verdict'])} {code(case['id'])} {verdict_word(case['verdict'])} ({', '.join(notes)})"
    reasons = case_reasons(case)
    if not reasons and case["reason"]:
        yield f"  - {code(case['reason'])}"
    for (what, why), trials in list(reasons.items())[:REASONS_SHOWN]:
        which = f" ({trial_list(trials)})" if case["trials"] > 1 else ""
        yield f"  - {code(what)}: {code(why)}{which}"
    if len(reasons) > REASONS_SHOWN:
        yield f"  - and {len(reasons) - REASONS_SHOWN} more reasons"


def _suites(suites: Sequence[SuiteLine]) -> Iterable[str]:
    yield "### Suites"
    yield ""
    compared = any(line.common for line in suites)
    columns = ["suite", ">passed", ">pass rate"] + ([">baseline", ">difference", ""] if compared else [])
    yield from _table(columns, [_suite(line, compared) for line in suites])


def _suite(line: SuiteLine, compared: bool) -> list[str]:
    apart = "" if line.gate else " (reported only)"
    rate = "none" if line.rate is None else percent(line.rate)
    row = [code(line.suite) + apart, f"{line.passed}/{line.total}", rate]
    if not compared:
        return row
    if line.baseline is None or line.difference is None:
        return [*row, "none", "", ""]
    return [*row, percent(line.baseline), difference_text("share", line.difference), line.note]


def _figures(figures: Sequence[FigureLine]) -> Iterable[str]:
    yield "### Figures"
    yield ""
    compared = any(line.baseline is not None for line in figures)
    columns = ["", "figure", ">candidate", "counted over"] + ([">baseline", ">difference"] if compared else [])
    yield from _table(columns, [_figure(line, compared) for line in figures])


def _figure(line: FigureLine, compared: bool) -> list[str]:
    name = f"{line.name}: {code(line.kind)}" if line.kind else line.name
    row = [line.group, name, line.text, line.counts]
    return [*row, line.baseline_text, line.difference_text] if compared else row


def _problems(summary: Row) -> Iterable[str]:
    if not summary["problems"]:
        return
    yield "### Problems"
    yield ""
    yield "What leaves the evidence thinner than it looks:"
    yield ""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for problem in summary["problems"]:
        key = (problem["kind"].replace("_", " "), problem["grader"], problem["message"])
        grouped.setdefault(key, []).append(problem["case"])
    for (kind, grader, message), cases in list(grouped.items())[:NAMES_SHOWN]:
        named = [case for case in dict.fromkeys(cases) if case]
        where = f" in {_codes(named, 5)}" if named else ""
        yield f"- {kind}: {' '.join(filter(None, (code(grader), code(message))))}{where}"
    if len(grouped) > NAMES_SHOWN:
        yield f"- and {len(grouped) - NAMES_SHOWN:,} more"
    yield ""


# --- size ------------------------------------------------------------------------------------------------------------

_CUT = "_{count:,} more lines are left out: the report is limited to {limit:,} bytes._\n"


def _fitting(text: Sequence[str], limit: int) -> str:
    """The lines that fit; whole ones only, so that no span or table is cut open."""
    whole = "\n".join(text).rstrip("\n") + "\n"
    if len(whole.encode()) <= limit:
        return whole
    room = limit - len(_CUT.format(count=len(text), limit=limit).encode()) - 1
    kept: list[str] = []
    for line in text:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept) + "\n\n" + _CUT.format(count=len(text) - len(kept), limit=limit)
