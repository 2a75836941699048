"""Numbers on the command line."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["AMOUNT"]


class _Amount(click.FloatRange):
    """A number above 0. `nan` lies in every range of click's, and `inf` in every open one: neither is an amount."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number above 0.", param, ctx)
        return number


AMOUNT = _Amount(min=0, min_open=True)
"""Seconds or USD."""
