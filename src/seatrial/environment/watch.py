"""Module globals that a fixture watches: they must come back from a trial as they went in.

What is compared is their whole content (see `contents`): attributes of objects and classes too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import islice
from typing import Any

from seatrial.environment.contents import content, differences
from seatrial.environment.failure import FixtureError, fixture_part
from seatrial.registry import load_object

__all__ = ["Watcher"]

_TOLD = 3
"""Differences told of one global."""
_LOCK = threading.Lock()
_watching: set[Watcher] = set()
"""Watchers of the trials in flight."""


class Watcher:
    """Remembers what watched globals hold, and tells which have changed."""

    def __init__(self, paths: Iterable[str], trial: str = "") -> None:
        self._trial = trial
        self._before = {path: _content(path) for path in paths}
        self._company: set[str] = set()
        with _LOCK:
            for other in _watching:
                if other._before.keys() & self._before.keys():
                    other._company.add(trial)
                    self._company.add(other._trial)
            _watching.add(self)

    def check(self) -> None:
        """Raise FixtureError naming every watched global that is not as it was, and what changed in it.

        Trials that run at the same time share them: a change by any of them is a leak for all, and the message names
        the others that watch the same global.
        """
        with _LOCK:
            _watching.discard(self)
        after = {path: _content(path) for path in self._before}
        changed = [_told(path, before, after[path]) for path, before in self._before.items() if after[path] != before]
        if changed:
            company = f"; at the same time ran {', '.join(sorted(self._company))}" if self._company else ""
            raise FixtureError(f"watched globals came back changed: {', '.join(changed)}{company}")


def _told(path: str, before: Any, after: Any) -> str:
    return f"{path} ({'; '.join(islice(differences(before, after), _TOLD))})"


def _content(path: str) -> Any:
    with fixture_part("watch"):
        return content(load_object(path))
