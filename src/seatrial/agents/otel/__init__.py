"""Agents seen through OpenTelemetry's spans."""

from __future__ import annotations

from seatrial.agents.otel.agent import TracedAgent

__all__ = ["TracedAgent"]
