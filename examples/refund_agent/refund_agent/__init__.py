"""The refund desk of a small shop: two LangGraph agents over an orders database.

`good` is the build that ships. The others have one realistic fault each, so that the evaluation itself can be seen to
work; `faulty.py` says what each of them gets wrong.
"""

from __future__ import annotations

from refund_agent.faulty import (
    circular_handoff,
    double_refund,
    exports_data,
    false_claim,
    leaks_card,
    no_handoff,
    over_limit,
    skips_verification,
    slow_and_costly,
    wrong_order_id,
)
from refund_agent.graph import Design, build, good

__all__ = [
    "Design",
    "build",
    "circular_handoff",
    "double_refund",
    "exports_data",
    "false_claim",
    "good",
    "leaks_card",
    "no_handoff",
    "over_limit",
    "skips_verification",
    "slow_and_costly",
    "wrong_order_id",
]
