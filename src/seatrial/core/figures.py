"""Figures that others measured: what they cost, how long they took.

One that nobody could have measured is unknown, as a number of tokens beyond reckoning is. So every sum of figures is a
number, however many there are.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["MOST", "KnownFigure", "figure_of", "packed", "unpacked"]

MOST = 1e15
"""The largest figure: more USD than there are, 30,000 years in milliseconds."""


def figure_of(value: float | None) -> float | None:
    """A figure as it is reckoned with; None for an unknown one: negative, not finite, or above MOST."""
    return value if value is not None and 0 <= value <= MOST else None


KnownFigure = Annotated[float | None, AfterValidator(figure_of)]
"""A field that holds one; what is no number at all is refused."""


def packed(figure: float | None) -> float:
    """A figure where only a float has room: NaN for an unknown one."""
    return math.nan if figure is None else figure


def unpacked(figure: float) -> float | None:
    """The figure that was packed."""
    return None if math.isnan(figure) else figure
