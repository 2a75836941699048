"""Environment variables that tell each trial its own address.

Clients read `OPENAI_BASE_URL` when they are made. A variable of the process is the same for all its trials, so that
concurrent ones could not be told apart; while a run lasts these read as the address of the trial whose context the
reading code runs in, elsewhere as the run's shared one. What is started as a process with `os.environ` copied in a
trial inherits that trial's; one that inherits without a copy gets the shared one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from seatrial.environment.model_proxy.address import ProxyAddress
from seatrial.environment.within import Within
from seatrial.errors import UsageError

__all__ = ["in_force", "own_addresses"]

_TAKEN = threading.Lock()
_NONE: Mapping[str, str] = {}
_AS_THEY_ARE = nullcontext(_NONE)
_OWN: ContextVar[Mapping[str, str]] = ContextVar("seatrial_model_addresses", default=_NONE)


def own_addresses(urls: Mapping[str, str]) -> AbstractContextManager[Mapping[str, str]]:
    """While this lasts the variables read as these here, and in tasks and threads that take this context."""
    return Within(_OWN, urls) if urls or _OWN.get() else _AS_THEY_ARE


class _OfTrial(dict[Any, Any]):
    """The store behind `os.environ`, with some values that depend on who asks."""

    def __init__(self, plain: Mapping[Any, Any], names: Mapping[Any, str]) -> None:
        super().__init__(plain)
        self._names = names

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        own = _OWN.get().get(self._names[key]) if key in self._names else None
        return value if own is None else type(value)(own if isinstance(value, str) else os.fsencode(own))


@contextmanager
def in_force(address: ProxyAddress | None) -> Iterator[None]:
    """While this lasts, the address's variables point to the proxy; afterwards they are as they were.

    UsageError when another run in this process has them.
    """
    if address is None:
        yield
        return
    if not _TAKEN.acquire(blocking=False):
        raise UsageError("another run with cassettes is under way in this process; their agents share its variables")
    before = {name: os.environ.get(name) for name in address.variables}
    environment: Any = os.environ  # whose store the standard library does not show
    try:
        for name in address.variables:
            os.environ[name] = address.shared[name]
        names = {environment.encodekey(name): name for name in address.variables}
        _store(_OfTrial(environment._data, names))
        yield
    finally:
        _store(dict(environment._data))
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        _TAKEN.release()


def _store(data: dict[Any, Any]) -> None:
    """`os.environ` and its twin in bytes share one store."""
    for view in (os.environ, getattr(os, "environb", None)):
        if view is not None:
            vars(view)["_data"] = data
