"""What a reader must know of a run whose model calls were recorded or replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["cassette_note"]


def cassette_note(summary: Mapping[str, Any]) -> str:
    """One line on the content of `results.json`; empty for a run without cassettes."""
    times = summary["times"]
    mode, trials = times.get("cassettes"), times["trials"]
    if not mode:
        return ""
    key = "replayed" if mode == "replay" else "recorded"
    count = sum(1 for trial in trials if trial.get(key))
    if not count:
        done = "answered from a cassette" if mode == "replay" else "recorded"
        return f"no model call came through the proxy, so nothing was {done}"
    share = f"{count:,} of {len(trials):,} {'trial' if len(trials) == 1 else 'trials'}"
    if mode == "record":
        return f"model calls of {share} recorded"
    return f"{share} replayed from cassettes: no evidence beyond the run that recorded them"
