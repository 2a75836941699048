"""What a reader must know of a run whose model calls were recorded or replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["cassette_note"]


def cassette_note(summary: Mapping[str, Any]) -> str:
    """One line on the content of `results.json`; empty for a run without cassettes."""
    times = summary["times"]
    mode, trials = times.get("cassettes"), times["trials"]
    if any(trial.get("replayed") for trial in trials):  # whatever `run.json` says
        mode = "replay"
    if not mode:
        return ""
    key = "replayed" if mode == "replay" else "recorded"
    count = sum(1 for trial in trials if trial.get(key))
    if not count:
        if mode == "replay":
            return "no answer came from a cassette: model calls were missed, or passed the proxy by"
        return "no model call came through the proxy, so nothing was recorded"
    share = f"{count:,} of {len(trials):,} {'trial' if len(trials) == 1 else 'trials'}"
    if mode == "record":
        return f"model calls of {share} recorded"
    return f"{share} replayed from cassettes: no new evidence"
