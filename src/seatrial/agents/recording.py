"""Which recorder of a framework counts here: asked by what the framework runs, known by context variable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, Protocol, TypeVar

__all__ = ["Recording"]


class _Closes(Protocol):
    def close(self) -> None: ...


R = TypeVar("R", bound=_Closes)


class Recording(Generic[R]):
    """The recorder of the context, of one framework. None outside every trial."""

    def __init__(self, name: str) -> None:
        self._give: ContextVar[Callable[[], R] | None] = ContextVar(name, default=None)

    def current(self) -> R | None:
        """The recorder of this context."""
        give = self._give.get()
        return None if give is None else give()

    @contextmanager
    def by(self, recorder: R) -> Iterator[R]:
        """What runs in here, in tasks and threads that take this context too, is told to `recorder`."""
        with self._given(lambda: recorder):
            yield recorder

    @contextmanager
    def on_demand(self, make: Callable[[], R]) -> Iterator[None]:
        """The same with a recorder that is made when something runs for the first time, and closed at the end."""
        made: list[R] = []
        lock = threading.Lock()

        def give() -> R:
            with lock:
                if not made:
                    made.append(make())
                return made[0]

        try:
            with self._given(give):
                yield
        finally:
            for recorder in made:
                recorder.close()

    @contextmanager
    def _given(self, give: Callable[[], R]) -> Iterator[None]:
        outer = self._give.get()
        self._give.set(give)
        try:
            yield
        finally:
            self._give.set(outer)
