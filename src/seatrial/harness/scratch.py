"""Where a run puts what lasts no longer than it does."""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Scratch"]


@dataclass
class Scratch:
    """A temporary folder that exists once somebody asks for it."""

    path: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self) -> Path:
        with self._lock:
            if self.path is None:
                self.path = Path(tempfile.mkdtemp(prefix="seatrial-"))
        return self.path

    def remove(self) -> None:
        """Remove it with all that is in it, if it was made."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path = None
