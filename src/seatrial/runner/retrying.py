"""Which attempts are repeated, and after how long.

Only what a case (or its project) names is worth another attempt: `timeout`, or the class name of what the agent raised.
A wrong answer is an answer. Before attempt n+1 the trial waits b·2^(n-1) seconds, at most a minute, times a factor
between a half and one that is drawn from the trial's seed: trials that failed together do not come back together, and a
run with the same seed waits as long. The waiting lies between attempts, so it is in no latency.

An attempt that the harness broke off is always made again, at once, and counts against no retry.
"""

from __future__ import annotations

import random

from seatrial.core.case import Retries
from seatrial.core.trace import StopReason
from seatrial.core.trial import TrialRecord

__all__ = ["LONGEST_S", "backoff_s", "worth_retrying"]

LONGEST_S = 60.0
"""No pause before an attempt is longer."""
_DOUBLINGS = 30
"""More of them change nothing, but large powers overflow."""


def worth_retrying(record: TrialRecord, retries: Retries, *, broken_off: int = 0) -> bool:
    """Whether this attempt was broken off, or ended in a named fault and another one is allowed.

    `broken_off`: how many attempts of this trial were broken off so far.
    """
    if record.broken_off:
        return True
    if record.attempt - broken_off >= retries.attempts:
        return False
    if record.stop_reason is StopReason.TIMEOUT:
        return "timeout" in retries.on
    error = record.error
    return error is not None and bool({error.type, error.type.rpartition(".")[2]} & set(retries.on))


def backoff_s(retries: Retries, seed: int, attempt: int) -> float:
    """Seconds to wait after this attempt (from 1, without those broken off) of the trial with this seed."""
    longest = min(retries.backoff_s * 2.0 ** min(attempt - 1, _DOUBLINGS), LONGEST_S)
    drawn = random.Random(f"{seed}/back-off/{attempt}").random()  # noqa: S311  chance of a pause, no secret
    return longest * (0.5 + drawn / 2)
