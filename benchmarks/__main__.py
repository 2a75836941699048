"""`make bench`: measure, print one table, and keep every value in `benchmarks/results.json`.

`make bench ROWS=overhead,memory` selects rows, `make bench QUICK=1` measures smaller sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measuring import ROOT, Bench, MeasuringError, System
from benchmarks.peers import peers_python
from benchmarks.profiles import Hot
from benchmarks.rows import ROWS
from benchmarks.sizes import FULL, QUICK, TINY, Sizes
from benchmarks.table import NAMES, OURS, Row, machine, row_data, row_problem, table, tally

__all__ = ["main", "measured_rows"]

SIZES = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}
READING = """\
Overhead is wall minus agent time, taken inside each process: starting it and importing do not count, except under
start-up. Every figure is a median; (0.5x) is Seatrial's figure over that system's, pair by pair. * our own target."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Returns 0, also when targets are missed; 1 when Seatrial has no figure in a row."""
    asked = _parsed(arguments)
    sizes = SIZES[asked.size]
    with TemporaryDirectory(prefix="seatrial-bench-") as place:
        bench = Bench(_systems(asked.peers), sizes, Path(place))
        bench.warm_up()
        rows = measured_rows(bench, asked.rows)
        hot = {row.name: _explained(row) for row in rows if row.verdict == "MISSED"}
    facts = _facts(sizes)
    print(_text(rows, hot, facts))
    data = {**facts, "rows": [row_data(row, hot.get(row.name, ())) for row in rows]}
    asked.results.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return int(any(row.verdict == "FAILED" for row in rows))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure what Seatrial costs, beside others.")
    parser.add_argument("--rows", type=_names, default=list(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="Seatrial and the floor only")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results.json")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = [name for name in text.replace(",", " ").split() if name] or list(ROWS)
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no row {unknown[0]!r}; rows are {', '.join(ROWS)}")
    return names


def _systems(with_peers: bool) -> Mapping[str, System]:
    here, peers, reason = Path(sys.executable), None, "left out"
    if with_peers:
        peers, reason = peers_python(ROOT / ".venv-bench", ROOT / "benchmarks" / "constraints.txt")
    modules = dict(zip(NAMES, ("ours", "floor", "pydantic_peer", "inspect_peer"), strict=True))
    return {
        name: System(name, f"benchmarks.systems.{module}", here if name in NAMES[:2] else peers, reason)
        for name, module in modules.items()
    }


def measured_rows(bench: Bench, names: Sequence[str]) -> list[Row]:
    """The rows, in the table's order; after Ctrl-C those that were measured before."""
    rows: list[Row] = []
    try:
        for name in filter(names.__contains__, ROWS):
            began = time.perf_counter()
            print(f"measuring {name} ...", end=" ", file=sys.stderr, flush=True)
            found = ROWS[name](bench)
            print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
            for row in found:
                print(f"  {row.name}: {row.column(OURS)} {row.unit}, {row.verdict}", file=sys.stderr, flush=True)
            rows += found
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return rows


def _explained(row: Row) -> list[Hot]:
    print(f"profiling {row.name} ...", file=sys.stderr, flush=True)
    try:
        return row.explain()
    except MeasuringError as error:
        print(f"no profile: {error}", file=sys.stderr)
        return []


def _facts(sizes: Sizes) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "size": sizes.name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": [round(load, 1) for load in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "seconds": round(time.perf_counter() - _BEGAN),
    }


_BEGAN = time.perf_counter()


def _text(rows: Sequence[Row], hot: Mapping[str, Sequence[Hot]], facts: Mapping[str, Any]) -> str:
    missed = [row for row in rows if row.verdict != "met"]
    parts = [table(rows), READING]
    if facts["size"] != FULL.name:
        parts.insert(0, f"Sizes: {facts['size']}. Smaller than the targets are about: for trying out, not for judging.")
    parts += [row_problem(row, hot.get(row.name, ())) for row in missed]
    parts.append(f"{tally([(row.verdict, row.goal.own) for row in rows])} {machine(facts)}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
