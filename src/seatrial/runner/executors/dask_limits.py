"""Rate limits and the limit for judges over all workers of a cluster, which come and go: its scheduler keeps them.

A worker asks it for each turn of a rate-limited call, and leases a place for each judge from one of Dask's semaphores.
The lease of a worker that died ends after `distributed.scheduler.locks.lease-timeout` (30 s unless it is set).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from seatrial.core.model_json import json_of
from seatrial.core.project import RatesSpec
from seatrial.environment.pace import Kind, Rates
from seatrial.errors import UsageError
from seatrial.runner.asking import AskedPlaces, AskedRates
from seatrial.runner.trial import TrialSettings

__all__ = ["asking_the_scheduler", "kept_by_the_scheduler", "refuse_unkept"]

_KEPT: dict[str, Rates] = {}
"""On the scheduler: the rates of each run that has any."""


def refuse_unkept(client: Any, rates: Rates | None) -> None:
    """UsageError when there are rates and the scheduler cannot keep them: it has no Seatrial, or runs no functions."""
    if rates is None or not rates.any:
        return
    try:
        client.run_on_scheduler(_drop, "")
    except (ImportError, AttributeError, ValueError) as error:
        client.close()
        raise UsageError(
            "rate limits on a cluster are kept by its scheduler, which must run functions and have Seatrial in this "
            f"version ({type(error).__name__}: {error}); install it there, or remove `rates`"
        ) from error


@contextmanager
def kept_by_the_scheduler(client: Any, run_id: str, rates: Rates | None) -> Iterator[None]:
    """While this lasts the scheduler keeps these rates."""
    if rates is None or not rates.any:
        yield
        return
    client.run_on_scheduler(_keep, run_id, json_of(rates.spec))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it has gone, and the rates with it
            client.run_on_scheduler(_drop, run_id)


def asking_the_scheduler(settings: TrialSettings, run_id: str) -> TrialSettings:
    """Settings for trials on this worker, which is running a task."""
    from distributed import Semaphore, get_client

    rates, judges = settings.rates, settings.judges
    if rates is not None and rates.any:
        client: Any = get_client()

        def seconds(kind: Kind, name: str) -> float:
            return float(client.run_on_scheduler(_seconds, run_id, kind, name))

        rates = AskedRates(rates.spec, seconds)
    if judges is not None:
        leases = Semaphore(judges.places, f"seatrial-judges-{run_id}")  # type: ignore[no-untyped-call]
        judges = AskedPlaces(judges.places, leases.acquire, leases.release)
    return replace(settings, rates=rates, judges=judges)


# --- on the scheduler ------------------------------------------------------------------------------------------------


def _keep(run_id: str, spec: dict[str, Any]) -> None:
    _KEPT[run_id] = Rates(RatesSpec.model_validate(spec))


def _seconds(run_id: str, kind: Kind, name: str) -> float:
    """Until such a call's turn comes."""
    now, at = _KEPT[run_id].turn(kind, name)
    return at - now


def _drop(run_id: str) -> None:
    _KEPT.pop(run_id, None)
