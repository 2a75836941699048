"""Module globals that a fixture watches: they must come back from a trial as they went in."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.core.encoding import dumps, to_json
from seatrial.environment.failure import FixtureError, fixture_part
from seatrial.registry import load_object

__all__ = ["Watcher"]


class Watcher:
    """Remembers what watched globals hold (compared as JSON), and tells which have changed."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._before = {path: _content(path) for path in paths}

    def check(self) -> None:
        """Raise FixtureError naming every watched global that is not as it was.

        Trials that run at the same time share them: a change by any of them is a leak for all.
        """
        changed = [path for path, before in self._before.items() if _content(path) != before]
        if changed:
            raise FixtureError(f"watched globals came back changed: {', '.join(changed)}")


def _content(path: str) -> str:
    with fixture_part("watch"):
        return dumps(to_json(load_object(path)), sort_keys=True)
