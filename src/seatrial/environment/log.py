"""What one trial printed."""

from __future__ import annotations

__all__ = ["Log"]

KEPT = 64 * 1024
"""Characters of a trial's log that are kept."""


class Log:
    """What one trial printed, up to a limit."""

    _kept = _dropped = 0

    def __init__(self) -> None:
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        room = max(KEPT - self._kept, 0)
        if room:
            self._parts.append(text[:room])
            self._kept += min(len(text), room)
        self._dropped += max(len(text) - room, 0)

    @property
    def text(self) -> str:
        """The kept text, with a note on how much was dropped."""
        note = f"\n... {self._dropped} more characters were printed" if self._dropped else ""
        return "".join(self._parts) + note
