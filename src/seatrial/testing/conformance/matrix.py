"""Reports of several frameworks as one page: which situation each of them passes, and what it does not observe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from seatrial.testing.conformance.names import SITUATIONS
from seatrial.testing.conformance.report import Outcome, Report, Result

__all__ = ["matrix"]

_MARKS = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "**failed**",
    Outcome.NOT_OBSERVED: "not observed",
    Outcome.ABSENT: "–",
}


_HEAD = """\
# Adapters by situation

Written by a run of the [conformance kit](writing-an-adapter.md): each adapter, with its real framework, in each
situation. "Not observed" means that the adapter cannot see what the situation is about, and claims nothing of it; "–"
that the framework has no such thing, for the reason below the table.
"""


def matrix(reports: Sequence[Report]) -> str:
    """The page in Markdown, the same for the same results."""
    parts = [_HEAD, _table(reports), _legend(), *(_notes(report) for report in reports)]
    return "\n".join(part for part in parts if part)


def _table(reports: Sequence[Report]) -> str:
    head = ["situation", *(report.name for report in reports)]
    rows = [[f"`{name}`", *(_MARKS[report[name].outcome] for report in reports)] for name in SITUATIONS]
    lines = [_row(head), _row("---" for _ in head), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _legend() -> str:
    return "\n".join(f"- `{name}`: {what}" for name, what in SITUATIONS.items()) + "\n"


def _notes(report: Report) -> str:
    lines = [*_unobserved(report.results), *_absent(report.results)]
    return "\n".join([f"## {report.name}", "", *(lines or ["- Everything in these situations is observed."]), ""])


def _unobserved(results: Sequence[Result]) -> Iterator[str]:
    missing = sorted({str(observable) for result in results for observable in result.unobserved})
    if missing:
        yield f"- Not observed: {', '.join(missing)}."


def _absent(results: Sequence[Result]) -> Iterator[str]:
    absent = sorted((one.reason, one.situation) for one in results if one.outcome is Outcome.ABSENT)
    for reason, group in groupby(absent, key=lambda pair: pair[0]):
        yield f"- {', '.join(f'`{situation}`' for _, situation in group)}: {reason}."
