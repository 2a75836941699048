"""The last table as it stands in `docs/performance.md`: `python -m benchmarks.page` rewrites the end of that page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import ROOT
from benchmarks.table import NAMES, machine, tally

__all__ = ["last_measured", "with_results"]

HEADING = "## Last measured"
WHOLE = "full"


def last_measured(data: Mapping[str, Any]) -> str:
    """`results.json` as the page's last section: a table, then what each missed row is made of."""
    rows: Sequence[Mapping[str, Any]] = data["rows"]
    head = ["what", NAMES[0], "target", "", *NAMES[1:]]
    lines = [head, ["---"] * len(head), *map(_line, rows)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    met = tally([(row["verdict"], row["own_target"]) for row in rows]).replace("*", "\\*")
    parts = [HEADING, f"{met} {machine(data)}", table]
    return "\n\n".join([*parts, *filter(None, map(_profile, rows))]) + "\n"


def _line(row: Mapping[str, Any]) -> list[str]:
    verdict = "met" if row["verdict"] == "met" else f"**{row['verdict']}**"
    ours, *others = (row["columns"][name] for name in NAMES)
    return [f"{row['name']}, {row['unit']}", ours, row["goal"].replace("*", "\\*"), verdict, *others]


def _profile(row: Mapping[str, Any]) -> str:
    if not row["profile"]:
        return ""
    head = f"### {row['name'].capitalize()}\n\n| share | own | times | where |\n| --- | --- | --- | --- |"
    lines = [
        f"| {hot['share']:.0%} | {hot['amount']:.3g} {hot['unit']} | {hot['count']:,} | `{hot['place']}` |"
        for hot in row["profile"]
    ]
    return "\n".join([head, *lines])


def with_results(page: str, data: Mapping[str, Any]) -> str:
    """The page with its last section made anew. ValueError when the sizes are not those the targets are about."""
    if data["size"] != WHOLE:
        raise ValueError(f"these results are of size {data['size']}; the page holds those of `make bench`")
    before, found, _ = page.partition(HEADING)
    if not found:
        raise ValueError(f"the page has no section {HEADING!r}")
    return before + last_measured(data)


if __name__ == "__main__":
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    path = Path(ROOT / "docs" / "performance.md")
    path.write_text(with_results(path.read_text(encoding="utf-8"), results), encoding="utf-8")
