"""How long 10,000 cases of five keys take to load, from one YAML file and from many.

Run it as `python benchmarks/load_cases.py`; the goal is under 3 s for each.
"""

from __future__ import annotations

import gc
import tempfile
import time
from pathlib import Path

from seatrial.core.project import Project
from seatrial.loading.cases import load_cases

CASES = 10_000
GOAL_S = 3.0


def case(number: int) -> str:
    """One case of five keys, as an entry of a list."""
    return (
        f"- id: case_{number}\n"
        f"  query: What is {number} plus {number}?\n"
        f'  expected_answer: "{2 * number}"\n'
        "  tags: [math, easy]\n"
        "  max_steps: 5\n"
    )


def seconds(files: int) -> float:
    """Seconds to load CASES cases that lie in so many files."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "cases", "smoke")
        suite.mkdir(parents=True)
        for file in range(files):
            numbers = range(file, CASES, files)
            Path(suite, f"{file}.yaml").write_text("".join(map(case, numbers)), encoding="utf-8")
        gc.collect()
        began = time.perf_counter()
        loaded = load_cases(Project(root=folder, defaults={"trials": 3, "limits": {"steps": 20}}))
        spent = time.perf_counter() - began
    assert len(loaded.cases) == CASES
    return spent


def main() -> None:
    """Measure and print one line."""
    one, many, each = seconds(1), seconds(100), seconds(CASES)
    verdict = "met" if max(one, many, each) < GOAL_S else "MISSED"
    print(
        f"load_cases: {CASES:,} cases of five keys: {one:.2f} s from 1 file, {many:.2f} s from 100, "
        f"{each:.2f} s from {CASES:,} (goal under {GOAL_S:g} s: {verdict})"
    )


if __name__ == "__main__":
    main()
