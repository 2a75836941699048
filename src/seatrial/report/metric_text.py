"""Figures with their units, as people read them: of the run, of its distance from the baseline, of a gate."""

from __future__ import annotations

import re
from math import isclose

from seatrial.core.decision import GateResult
from seatrial.core.metric import METRICS, Metric, Unit, points
from seatrial.report.screen import money, percent, seconds

__all__ = ["difference_text", "figure_of", "figure_text", "limit_of", "metric_of"]


def figure_text(unit: Unit, value: float) -> str:
    """A figure with its unit."""
    match unit:
        case "share":
            return percent(value)
        case "points":
            return _points(value)
        case "ms":
            return seconds(value)
        case "usd":
            return money(value)
    return _number(value)


def _points(value: float, digits: int = 1) -> str:
    return points(f"{value * 100:.{digits}f}")


def _number(value: float) -> str:
    whole = abs(value) >= 100 or isclose(value, round(value), abs_tol=1e-9)
    return f"{value:,.0f}" if whole else f"{value:,.2f}"


def difference_text(unit: Unit, difference: float) -> str:
    """Candidate minus baseline with its sign, shares in points; `0` only when they are the same."""
    if isclose(difference, 0, abs_tol=1e-12):
        return "0"
    sign = "+" if difference > 0 else "-"
    text = _points(abs(difference)) if unit == "share" else figure_text(unit, abs(difference))
    return f"{sign}{text}" if re.search("[1-9]", text) else f"{sign}under {re.sub(r'0(?=[^0-9]*$)', '1', text)}"


# --- gates -----------------------------------------------------------------------------------------------------------


def metric_of(gate: GateResult) -> str:
    """The gate's name without its group and bound: `tools.minimum_tool_precision` -> `tool_precision`."""
    last = gate.name.rpartition(".")[2]
    return last.removesuffix("_exceeds").removeprefix("minimum_").removeprefix("maximum_")


def figure_of(gate: GateResult) -> str:
    """The gate's figure, in as many digits as it takes to tell it from the limit; empty when there is none."""
    return "" if gate.figure is None else _metric(gate).shown(gate.figure, gate.limit)


def limit_of(gate: GateResult) -> str:
    """`at least 98 %` of a minimum, `at most 0` of a maximum or a review condition."""
    return f"{'at least' if gate.bound == 'minimum' else 'at most'} {_metric(gate).shown(gate.limit, gate.figure)}"


def _metric(gate: GateResult) -> Metric:
    """The gate's metric; a decision of another version may name one that is not known here."""
    return METRICS.get(gate.metric) or Metric(gate.metric, "", "number", "")
