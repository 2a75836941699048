"""Every framework that the kit is run with: what the modules `*_framework.py` beside this one offer."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from seatrial.testing.conformance import Framework, Result, check_situation, frameworks_at

__all__ = ["all_frameworks", "frameworks_in", "modules", "result_of"]

HERE = Path(__file__).resolve().parent


def modules() -> list[str]:
    """Names of the modules, without loading any: frameworks take seconds to load."""
    return sorted(path.stem for path in HERE.glob("*_framework.py") if not path.stem.startswith("test_"))


@cache
def frameworks_in(module: str) -> tuple[Framework, ...]:
    """What a module offers."""
    return frameworks_at(f"conformance.{module}")


def all_frameworks() -> list[Framework]:
    """All of them, in the order of their modules."""
    return [framework for module in modules() for framework in frameworks_in(module)]


@cache
def result_of(framework: Framework, situation: str) -> Result:
    """What the kit finds, once in a session."""
    return check_situation(framework, situation)
