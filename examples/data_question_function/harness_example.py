"""The same four questions without any files: three lines of Python a case.

    python harness_example.py            # version 1: 3/4 passed
    python harness_example.py version_2  # version 2: 3/4 passed, and not the same three

`seatrial compare` on the two files they write says which case broke and which was fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import data_agent

from seatrial import Harness

TABLE = """category,amount,due
travel,120,2026-05-04
food,30,2026-04-11
travel,60,2026-04-28
office,90,2026-06-01
food,1000,2026-05-30
"""


def says(expected: str) -> Callable[[str], tuple[bool, str]]:
    """A check: the answer holds this text."""

    def check(output: str) -> tuple[bool, str]:
        return expected in output, f"looking for {expected!r} in {output!r}"

    return check


def harness(version: str) -> Harness:
    """The four cases around one version of the agent."""
    built = Harness(getattr(data_agent, version))
    median = "What is the median amount?"
    built.add("median", {"message": median, "rows": TABLE}, says("is 90."))
    built.add("top_category", {"message": "Which category costs most?", "rows": TABLE}, says("food"))
    built.add("deadline", {"message": "What is due first?", "rows": TABLE}, says("2026-04-11"))
    built.add("empty_input", {"message": median, "rows": "category,amount,due\n"}, says("no data"))
    return built


def main(version: str = "version_1") -> None:
    """Run the cases, print them, and keep them in a file."""
    prepared = harness(version)
    prepared.report(prepared.run(), path=f"eval_results_{version}.json")


if __name__ == "__main__":
    main(*sys.argv[1:2])
