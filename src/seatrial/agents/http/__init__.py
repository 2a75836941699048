"""Agents that are services: any that takes and gives JSON, and OpenAI-compatible chat endpoints.

See `agent` for what happens in a trial, `mapping` for `input:` and `output:`, `chat` for chat endpoints, `client` for
requests and streams, `callback` for the address at which a service reaches its trial. Needs httpx (extra `http`).
"""

from __future__ import annotations

from seatrial.agents.http.agent import HTTPAgent

__all__ = ["HTTPAgent"]
