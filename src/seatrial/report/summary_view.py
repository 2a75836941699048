"""A run's results on the terminal: what failed and why first, then the tables, the verdict last."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from seatrial.core.encoding import shortened
from seatrial.report.case_table import legend, print_case_table
from seatrial.report.literal import value_text
from seatrial.report.reasons import case_reasons, trial_list, verdict_word
from seatrial.report.replays import cassette_note
from seatrial.report.screen import (
    STATUS_STYLES,
    VERDICT_STYLES,
    Cell,
    Screen,
    left,
    money,
    percent,
    right,
    seconds,
    times,
)

__all__ = ["print_summary", "verdict_line"]

Row = Mapping[str, Any]

CASES_SHOWN = 40
"""Rows of the case table, and failed cases told in full, without `-v`."""
REASONS_SHOWN = 6
"""Different reasons told per failed case without `-v`."""
PROBLEMS_SHOWN = 12

_ORDER = {word: rank for rank, word in enumerate(("failed", "invalid", "not_run", "ungraded", "passed"))}


def print_summary(console: Console, summary: Row, *, verbosity: int = 0, run: str = "") -> None:
    """Show the content of `results.json`. `verbosity` below 0: the verdict's line alone; above 0: every row.

    `run` is how the shell names this run (`latest`, a folder): with it, the way to a failed trial's trace is told.
    """
    screen = Screen(console)
    if verbosity >= 0:
        everything = verbosity > 0
        _failures(screen, summary, everything)
        _cases(screen, summary, everything)
        _suites(screen, summary["suites"])
        _tools(screen, summary["figures"]["tools"])
        _handoffs(screen, summary["figures"]["handoffs"])
        _figures(screen, summary)
        _problems(screen, summary["problems"], everything)
        _way_to_trace(screen, summary["cases"], run)
        console.print()
    screen.unbroken(verdict_line(screen, summary))


def verdict_line(screen: Screen, summary: Row) -> Text:
    """The whole run in one line: verdict, cases, trials."""
    figures = summary["figures"]
    cases, trials = figures["cases"], figures["trials"]
    word = figures["verdict"]
    parts: list[Cell] = [f"{cases['passed']:,} of {times(cases['total'], 'case')} passed"]
    parts += [_counted(figures, key) for key in ("failed", "invalid", "ungraded", "not_run")]
    if trials["planned"] != cases["total"]:
        parts.append(f"{trials['passed']:,} of {times(trials['planned'] - trials['saved'], 'trial')} passed")
        parts.append(f"{trials['saved']:,} not needed" if trials["saved"] else "")
    stopped = {
        "agent_error": "raised",
        "timeout": "timed out",
        "max_steps": "hit the step limit",
        "budget": "hit the cost limit",
    }
    parts += [f"{trials['stops'][key]} {said}" for key, said in stopped.items() if trials["stops"].get(key)]
    return Text.assemble((word.upper(), f"bold {VERDICT_STYLES[word]}"), "  ", screen.join(parts))


def _counted(figures: Row, key: str) -> str:
    """`3 failed (1 reported only)`: what decides nothing is said, so that the verdict does not surprise."""
    count, gating = figures["cases"][key], figures["gating_cases"][key]
    apart = f" ({count - gating} reported only)" if count > gating else ""
    return f"{count:,} {verdict_word(key)}{apart}" if count else ""


# --- what did not pass -----------------------------------------------------------------------------------------------


def _failures(screen: Screen, summary: Row, everything: bool) -> None:
    wrong = sorted((c for c in summary["cases"] if c["verdict"] != "passed"), key=lambda c: _ORDER[c["verdict"]])
    shown = wrong if everything else wrong[:CASES_SHOWN]
    for case in shown:
        _told(screen, case, everything)
    if len(shown) < len(wrong):
        screen.line(Text(f"{screen.marks.more} and {len(wrong) - len(shown)} more that did not pass; -v shows all"))


def _told(screen: Screen, case: Row, everything: bool) -> None:
    verdict = case["verdict"]
    screen.console.print()
    need = f", {case['required']} needed" if case["required"] != case["trials"] else ""
    counts = f"{case['passes']}/{case['trials']} passed{need}"
    apart = "" if case["gate"] else "reported only"
    word = Text(verdict_word(verdict).upper(), style=f"bold {STATUS_STYLES[verdict]}")
    notes = screen.join([counts, case["suite"], case["risk"], apart])
    notes.stylize("dim")
    screen.line(Text.assemble(word, "  ", screen.text(case["id"], "bold"), "  ", notes))
    reasons = case_reasons(case)
    if not reasons:
        screen.line(screen.text(case["reason"]), indent=4)
        return
    shown = list(reasons) if everything else list(reasons)[:REASONS_SHOWN]
    style = STATUS_STYLES[verdict]
    rows = [[screen.text(name, style), _reason(screen, why, reasons[name, why], case)] for name, why in shown]
    screen.rows(left("", ""), rows, indent=4, header=False)
    if len(shown) < len(reasons):
        screen.line(Text(f"{screen.marks.more} and {len(reasons) - len(shown)} more reasons; -v shows all"), indent=4)
    if everything:
        _outputs(screen, case)


def _reason(screen: Screen, why: str, trials: list[int], case: Row) -> Text:
    text = screen.block(why)
    if case["trials"] > 1:
        text.append(f"  {trial_list(trials)}", style="dim")
    return text


def _outputs(screen: Screen, case: Row) -> None:
    rows = [
        [
            Text(f"trial {trial['trial']}", style="dim"),
            Text(verdict_word(trial["status"]), style=STATUS_STYLES[trial["status"]]),
            screen.block(shortened(value_text(trial["output"]), 400)) if trial["output"] is not None else "no output",
        ]
        for trial in case["trials_detail"]
    ]
    screen.rows(left("", "", ""), rows, indent=4, header=False)


def _way_to_trace(screen: Screen, cases: Sequence[Row], run: str) -> None:
    failed = next((case for case in cases if case["verdict"] == "failed"), None)
    if not run or failed is None:
        return
    trial = next(trial["trial"] for trial in failed["trials_detail"] if trial["status"] == "failed")
    key = f"{failed['id']}#{trial}"
    command = f"seatrial show {shlex.quote(run)} {shlex.quote(key)}"
    screen.console.print()
    screen.unbroken(screen.text(f"To see what happened: {command}", "dim"))


# --- tables ----------------------------------------------------------------------------------------------------------


def _cases(screen: Screen, summary: Row, everything: bool) -> None:
    cases = sorted(summary["cases"], key=lambda case: _ORDER[case["verdict"]])
    shown = cases if everything else cases[:CASES_SHOWN]
    graders = summary["graders"]
    names = [grader["name"] for grader in graders]
    screen.title("Cases", legend(screen, shown))
    labels = print_case_table(screen, shown, names)
    if len(shown) < len(cases):
        rest = len(cases) - len(shown)
        screen.line(Text(f"{screen.marks.more} and {rest} more; -v shows all", style="dim"), indent=2)
    if graders:
        _graders(screen, graders, labels)


def _graders(screen: Screen, graders: Sequence[Row], labels: Sequence[str]) -> None:
    numbered = labels != [grader["name"] for grader in graders]
    screen.title("Graders", "mean score, over the trials that were scored")
    lacking = {"not observed": "abstained", "broke": "failures"}
    lacking = {head: key for head, key in lacking.items() if any(grader[key] for grader in graders)}
    columns = right("#") if numbered else []
    columns += [*left("grader"), *right("mean", "scored", "passed", "failed", *lacking)]
    rows: list[list[Cell]] = []
    for label, grader in zip(labels, graders, strict=True):
        number: list[Cell] = [label] if numbered else []
        rows.append([*number, *_grader(screen, grader), *(_count(grader[key]) for key in lacking.values())])
    screen.rows(columns, rows)


def _grader(screen: Screen, grader: Row) -> list[Cell]:
    name = screen.text(grader["name"])
    if not grader["required"]:
        name.append("  advisory", style="dim")
    mean = "none" if grader["mean"] is None else f"{grader['mean']:.2f}"
    scored = f"{grader['scored']:,} of {grader['of']:,}"
    return [name, mean, scored, f"{grader['passed']:,}", _count(grader["failed"], "red")]


def _count(count: int, style: str = "yellow") -> Text:
    return Text(f"{count:,}", style=style if count else "dim")


def _suites(screen: Screen, suites: Sequence[Row]) -> None:
    screen.title("Suites", "trial pass rate: mean over cases, with its 95 % interval for these cases")
    columns = [*left("suite"), *right("cases", "passed", "failed", "other", "trials"), *left("pass rate")]
    screen.rows(columns, [_suite(screen, suite) for suite in suites])


def _suite(screen: Screen, suite: Row) -> list[Cell]:
    cases, trials = suite["cases"], suite["trials"]
    name = screen.text(suite["suite"])
    if not suite["gate"]:
        name.append("  reported only", style="dim")
    other = cases["invalid"] + cases["ungraded"] + cases["not_run"]
    return [
        name,
        str(cases["total"]),
        str(cases["passed"]),
        _count(cases["failed"], "red"),
        _count(other),
        f"{trials['passed']}/{trials['passed'] + trials['failed']}",
        rate_text(screen, suite["rate"], trials),
    ]


def rate_text(screen: Screen, rate: Row | None, trials: Row) -> Text:
    """A trial pass rate with its interval, and how many trials are not in it."""
    if rate is None:
        return Text("none: no valid trial", style="yellow")
    ends = "" if rate["low"] is None else f" [{rate['low'] * 100:.1f}, {rate['high'] * 100:.1f}]"
    text = Text(f"{percent(rate['rate'])}{ends}")
    left_out = trials["planned"] - trials["saved"] - rate["valid"]
    note = Text(f"{left_out:,} of {trials['planned']:,} not valid" if left_out else "", style="yellow")
    return screen.join([text, note])


def _tools(screen: Screen, tools: Sequence[Row]) -> None:
    if not tools:
        return
    screen.title("Tools")
    columns = [*left("tool"), *right("calls", "in trials", "required and right", "called and right")]
    rows: list[list[Cell]] = [
        [
            tool["tool"],
            f"{tool['calls']:,}",
            f"{tool['trials']} of {tool['of']}",
            _ratio(tool["recall"], screen),
            _ratio(tool["precision"], screen),
        ]
        for tool in tools
    ]
    screen.rows(columns, rows)


def _ratio(ratio: Row | None, screen: Screen) -> Text:
    if ratio is None or not ratio["of"]:
        return Text(screen.marks.nothing, style="dim")
    return Text(f"{ratio['hit']:g} of {ratio['of']:g}", style="" if ratio["hit"] == ratio["of"] else "red")


def _handoffs(screen: Screen, handoffs: Sequence[Row]) -> None:
    if not handoffs:
        return
    screen.title("Hand-offs")
    rows: list[list[Cell]] = [
        [
            screen.join([row["source"], row["target"]], f" {screen.marks.arrow} "),
            f"{row['count']:,}",
            f"{row['trials']} of {row['of']}",
        ]
        for row in handoffs
    ]
    screen.rows([*left("from and to"), *right("count", "in trials")], rows)


# --- figures ---------------------------------------------------------------------------------------------------------


def _figures(screen: Screen, summary: Row) -> None:
    screen.title("Figures")
    rows: list[list[Cell]] = [[Text(name, style="dim"), text] for name, text in _figure_rows(screen, summary)]
    screen.rows(left("", ""), rows, header=False)


def _figure_rows(screen: Screen, summary: Row) -> Iterable[tuple[str, Text]]:
    figures = summary["figures"]
    rate, trials = figures["pass_rate"], figures["trials"]
    yield "trial pass rate", screen.join([rate_text(screen, rate, trials), _behind(rate)])
    for name, key in (("first attempt", "first_attempt"), ("consistency", "consistency")):
        if figures[key]["counted"] and trials["planned"] > figures["cases"]["total"]:
            yield name, screen.join([percent(figures[key]["mean"]), _of(figures[key], "case")])
    for unit, mean in figures["steps"].items():
        label = "steps" if unit == "model calls" else "steps (tool calls)"
        yield label, screen.join([_mean(mean, "{:.1f} a trial"), _of(mean, "trial")])
    yield "tokens", _tokens(screen, figures["tokens"])
    yield "cost", _cost(screen, figures["cost"])
    if figures["saved"] is not None:
        yield "saved", _saved(screen, figures["saved"], trials)
    yield "latency", _latency(screen, summary["times"]["latency"])
    note = cassette_note(summary)
    if note:
        yield "cassettes", Text(note, style="yellow" if summary["times"]["cassettes"] == "replay" else "")


def _behind(rate: Row | None) -> str:
    if rate is None:
        return ""
    pooled = "" if abs(rate["pooled"] - rate["rate"]) < 5e-4 else f" ({percent(rate['pooled'])} pooled)"
    trials = f"{rate['passes']:,} of {times(rate['valid'], 'valid trial')}{pooled}"
    return f"{trials}, {rate['cases']:,} of {times(rate['of_cases'], 'case')}"


def _of(mean: Row, noun: str) -> str:
    return f"{mean['counted']:,} of {times(mean['of'], noun)}"


def _mean(mean: Row, form: str) -> str:
    return "unknown" if mean["mean"] is None else form.format(mean["mean"])


def _tokens(screen: Screen, tokens: Row) -> Text:
    known = tokens["input"]
    if not known["counted"] and not tokens["output"]["counted"]:
        return screen.join(["unknown", _of(known, "trial")])
    form = "{:,.0f}"
    both = f"{_mean(known, form)} in, {_mean(tokens['output'], form)} out a trial"
    return screen.join([both, _of(known, "trial")])


def _cost(screen: Screen, cost: Row) -> Text:
    total = cost["total"]
    of = total["counted"] + total["unknown"]
    if not total["counted"]:
        return screen.join(["unknown", f"0 of {times(of, 'trial')} priced"])
    if total["unknown"]:
        said = f"at least {money(total['known_usd'])}, {total['unknown']} of {of} unknown"
    else:
        said = money(total["usd"])
    each = cost["per_success_usd"]
    parts = [said, "" if each is None else f"{money(each)} a passed trial"]
    for key in ("retried", "invalid"):
        spent = cost[key]["known_usd"]
        parts.append(f"{money(spent)} of it on {key} trials" if spent else "")
    judges = cost["judges"]
    least = "at least " if judges["unknown"] else ""
    parts.append(f"judges {least}{money(judges['known_usd'])} more" if judges["counted"] or judges["unknown"] else "")
    return screen.join(parts)


def _saved(screen: Screen, saved: Row, trials: Row) -> Text:
    """What stopping decided cases saved, and what it costs: the rates above are estimates that compare with nothing."""
    said = f"{saved['trials']:,} of {times(trials['planned'], 'trial')} not needed"
    if not saved["trials"]:
        return Text(said)
    worth = "their cost unknown" if saved["usd"] is None else f"about {money(saved['usd'])}"
    part = f"cost known of {saved['priced']:,}" if 0 < saved["priced"] < saved["trials"] else ""
    return screen.join([said, worth, part, "rates are estimates, only verdicts compare"])


def _latency(screen: Screen, latency: Row) -> Text:
    if latency["median_ms"] is None:
        return screen.join(["unknown", _of(latency, "trial")])
    figures = [f"median {seconds(latency['median_ms'])}", f"p95 {seconds(latency['p95_ms'])}"]
    return screen.join([", ".join(figures), _of(latency, "trial")])


# --- problems --------------------------------------------------------------------------------------------------------

_KINDS = {
    "grader_failure": "grader broke",
    "abstained": "not observed",
    "fixture": "fixture failed",
    "harness": "harness failed",
    "judge": "judge failed",
    "leftovers": "left behind",
    "not_run": "not run",
    "run": "run",
}


def _problems(screen: Screen, problems: Sequence[Row], everything: bool) -> None:
    """Problems, equal ones together with where they occurred."""
    if not problems:
        return
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for problem in problems:
        grouped.setdefault((problem["kind"], problem["grader"], problem["message"]), []).append(problem)
    shown = list(grouped.items()) if everything else list(grouped.items())[:PROBLEMS_SHOWN]
    screen.title("Problems", "what leaves the evidence thinner than it looks")
    rows: list[list[Cell]] = []
    for (kind, grader, message), where in shown:
        place = screen.text(_places(where, everything), "dim")
        what = screen.join([grader, screen.block(message)], ": ")
        rows.append([Text(_KINDS.get(kind, kind), style="yellow"), screen.join([what, place], "  ")])
    screen.rows(left("", ""), rows, header=False)
    if len(shown) < len(grouped):
        rest = len(grouped) - len(shown)
        screen.line(Text(f"{screen.marks.more} and {rest} more; -v shows all", style="dim"), indent=2)


def _places(where: Sequence[Row], everything: bool) -> str:
    named = [p["case"] if p["trial"] is None else f"{p['case']}#{p['trial']}" for p in where if p["case"]]
    shown = named if everything else named[:3]
    rest = f" and {len(named) - len(shown)} more" if len(shown) < len(named) else ""
    count = f"{len(named)}x: " if len(named) > 1 else ""
    return f"{count}{', '.join(shown)}{rest}" if named else ""
