"""Which cases depend on order or company, on the terminal and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from seatrial.errors import ExitCode
from seatrial.report.screen import Cell, Screen, left, times
from seatrial.verdict.isolation import CaseIsolation, Change, Finding, Isolation, Seen

__all__ = ["isolation_data", "print_isolation"]

COMPANY_SHOWN = 6
SUSPECTS_SHOWN = 8
"""Told without `-v`."""

_WORDS = {ExitCode.PASS: "independent", ExitCode.FAILED: "dependent", ExitCode.INCOMPLETE: "undecided"}
_STYLES = {"independent": "green", "dependent": "red", "undecided": "yellow", "flaky": "yellow"}


def print_isolation(console: Console, result: Isolation, *, verbosity: int = 0) -> None:
    """Every case that is not independent with what brings it about, then the orders tried, the verdict last."""
    screen = Screen(console)
    for case in (*result.found(Finding.DEPENDENT), *result.found(Finding.FLAKY)):
        _case(screen, case, everything=verbosity > 0)
    for note in _notes(result):
        screen.console.print()
        screen.line(Text.assemble(("Note  ", "yellow"), screen.text(note)))
    if verbosity > 0:
        screen.title("Orders")
        screen.rows(left(""), [[order] for order in result.orders], header=False)
    if screen.console.is_terminal or verbosity >= 0:
        screen.console.print()
    screen.unbroken(_verdict(screen, result))


def _case(screen: Screen, case: CaseIsolation, *, everything: bool) -> None:
    word = str(case.finding)
    screen.console.print()
    head = (word.upper(), f"bold {_STYLES[word]}"), "  ", screen.text(case.case_id, "bold"), "  "
    screen.line(Text.assemble(*head, screen.text(case.suite, "dim")))
    rows: list[list[Cell]] = [[Text(name, style="dim"), text] for name, text in _lines(screen, case, everything)]
    screen.rows(left("", ""), rows, indent=4, header=False)


def _lines(screen: Screen, case: CaseIsolation, everything: bool) -> Iterator[tuple[str, Cell]]:
    if case.alone is not None:
        yield "alone", _outcome(screen, case.alone, case.differs)
    if case.otherwise is not None:
        yield (
            "another time" if case.finding is Finding.FLAKY else _beside(case),
            _outcome(screen, case.otherwise, case.differs),
        )
    yield "seen", case.where
    if case.finding is Finding.DEPENDENT:
        yield "because of" if case.fewest else "among", _company(screen, case, everything)
        yield "suspects", _suspects(screen, case.shared, everything)


def _beside(case: CaseIsolation) -> str:
    return "side by side" if case.together else "after others"


def _outcome(screen: Screen, seen: Seen, differs: Sequence[str]) -> Text:
    """How the trial came out, in the features that matter."""
    told = [f"{name}: {seen.features.get(name, 'none')}" for name in differs if name not in ("status", "stop")]
    told = [seen.reason] if seen.reason and not _only_outcome(differs) else told
    return screen.join([seen.status, *told])


def _only_outcome(differs: Sequence[str]) -> bool:
    return all(name.startswith("outcome ") for name in differs)


def _company(screen: Screen, case: CaseIsolation, everything: bool) -> Text:
    names = [f"{name} (itself)" if name == case.case_id else name for name in case.company]
    shown = names if everything else names[:COMPANY_SHOWN]
    rest = f"{screen.marks.more} and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    note = "" if case.fewest else f"one or more of these {len(names)}"
    return screen.join([screen.text(", ".join(shown)), rest, Text(note, style="dim")])


def _suspects(screen: Screen, shared: Sequence[Change], everything: bool) -> Text:
    if not shared:
        return Text("nothing that Seatrial looks at changed: a service, a database or files elsewhere", style="dim")
    shown = shared if everything else shared[:SUSPECTS_SHOWN]
    lines = [screen.join([f"{_KINDS.get(change.kind, '')}{change.what}", change.how], "  ") for change in shown]
    if len(shown) < len(shared):
        lines.append(Text(f"{screen.marks.more} and {len(shared) - len(shown)} more; -v shows all", style="dim"))
    return Text("\n").join(lines)


_KINDS = {"environment": "variable ", "file": "file ", "thread": "thread ", "module": "module "}


def _notes(result: Isolation) -> Iterator[str]:
    if result.unseen:
        names = ", ".join(result.unseen[:COMPANY_SHOWN])
        more = "" if len(result.unseen) <= COMPANY_SHOWN else f" and {len(result.unseen) - COMPANY_SHOWN} more"
        yield f"never reached in company, because a trial before them ended the process: {names}{more}"
    yield from result.notes


def _verdict(screen: Screen, result: Isolation) -> Text:
    word = _WORDS[result.exit_code]
    parts: list[Cell] = [times(len(result.cases), "case")]
    for finding, said in ((Finding.DEPENDENT, "on order or company"), (Finding.FLAKY, "")):
        found = result.found(finding)
        if found:
            parts.append(f"{len(found):,} {finding} {said}".strip())
    parts.append(f"{times(result.trials, 'trial')} in {times(result.processes, 'process', 'processes')}")
    parts.append(f"seed {result.seed}")
    return Text.assemble((word.upper(), f"bold {_STYLES[word]}"), "  ", screen.join(parts))


# --- data ------------------------------------------------------------------------------------------------------------


def isolation_data(result: Isolation) -> dict[str, Any]:
    """The same as JSON data: `{version, verdict, seed, orders, trials, processes, cases, notes}`."""
    return {
        "version": 1,
        "verdict": _WORDS[result.exit_code],
        "seed": result.seed,
        "orders": list(result.orders),
        "trials": result.trials,
        "processes": result.processes,
        "cases": [_case_data(case) for case in result.cases],
        "notes": list(_notes(result)),
    }


def _case_data(case: CaseIsolation) -> dict[str, Any]:
    return {
        "id": case.case_id,
        "suite": case.suite,
        "finding": str(case.finding),
        "alone": _seen_data(case.alone),
        "otherwise": _seen_data(case.otherwise),
        "differs": list(case.differs),
        "where": case.where,
        "company": list(case.company),
        "together": case.together,
        "fewest": case.fewest,
        "shared": [dict(vars(change)) for change in case.shared],
    }


def _seen_data(seen: Seen | None) -> dict[str, Any] | None:
    return None if seen is None else {"features": dict(seen.features), "reason": seen.reason}
