"""Tools of the scripted agents: plain, typed, documented functions that note in the ledger that their body ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.testing.conformance.expected import Ledger
from seatrial.testing.conformance.signals import Meeting, Signal

__all__ = [
    "compare_prices",
    "issue_refund",
    "look_up_order",
    "meet",
    "meet_blocking",
    "raising",
    "wait_for_ever",
    "wait_for_ever_blocking",
    "weigh",
    "weigh_blocking",
]

Function = Callable[..., Any]


def look_up_order(ledger: Ledger) -> Function:
    """Gives data, not text."""

    def look_up_order(order_id: str) -> dict[str, Any]:
        """Look an order up."""
        ledger.note("look_up_order", order_id=order_id)
        return {"order_id": order_id, "status": "delivered"}

    return look_up_order


def compare_prices(ledger: Ledger) -> Function:
    """Has two arguments, one with a default."""

    def compare_prices(amount: int, currency: str = "EUR") -> str:
        """Say whether an amount is fair."""
        ledger.note("compare_prices", amount=amount)
        return f"{amount} {currency} is fair"

    return compare_prices


def issue_refund(ledger: Ledger) -> Function:
    """Needs approval in the situations that have it."""

    def issue_refund(order_id: str, amount: int) -> str:
        """Pay money back."""
        ledger.note("issue_refund", order_id=order_id, amount=amount)
        return f"paid {amount} for {order_id}"

    return issue_refund


def raising(ledger: Ledger) -> Function:
    """Raises."""

    def look_up_order(order_id: str) -> str:
        """Look an order up."""
        ledger.note("look_up_order", order_id=order_id)
        raise ValueError("the order book is closed")

    return look_up_order


def weigh(ledger: Ledger, begun: Signal, lighter_done: Signal) -> Function:
    """The heavy parcel is weighed until the light one is done, and that not before the heavy one has begun."""
    answer = _weighed(ledger, begun)

    async def weigh(parcel: str) -> str:
        """Weigh a parcel."""
        text = answer(parcel)
        await (lighter_done if parcel == "heavy" else begun).reached()
        return text

    return weigh


def weigh_blocking(ledger: Ledger, begun: Signal, lighter_done: Signal) -> Function:
    """The same, blocking its thread."""
    answer = _weighed(ledger, begun)

    def weigh(parcel: str) -> str:
        """Weigh a parcel."""
        text = answer(parcel)
        (lighter_done if parcel == "heavy" else begun).wait()
        return text

    return weigh


def _weighed(ledger: Ledger, begun: Signal) -> Callable[[str], str]:
    def answer(parcel: str) -> str:
        ledger.note("weigh", parcel=parcel)
        if parcel == "heavy":
            begun.set()
        return f"the {parcel} one weighs 1 kg"

    return answer


def wait_for_ever(ledger: Ledger, begun: Signal, over: Signal) -> Function:
    """Does not come back while the trial lasts."""

    async def call_the_depot(order_id: str) -> str:
        """Ask the depot."""
        ledger.note("call_the_depot", order_id=order_id)
        begun.set()
        await over.reached_at_last()
        return "nobody there"

    return call_the_depot


def wait_for_ever_blocking(ledger: Ledger, begun: Signal, over: Signal) -> Function:
    """The same, blocking its thread."""

    def call_the_depot(order_id: str) -> str:
        """Ask the depot."""
        ledger.note("call_the_depot", order_id=order_id)
        begun.set()
        over.wait_at_last()
        return "nobody there"

    return call_the_depot


def meet(ledger: Ledger, meeting: Meeting) -> Function:
    """Returns once every trial is in it."""

    async def meet(visitor: str) -> str:
        """Meet the other visitors."""
        ledger.note("meet", visitor=visitor)
        await meeting.join()
        return f"{visitor} met the others"

    return meet


def meet_blocking(ledger: Ledger, meeting: Meeting) -> Function:
    """The same, blocking its thread."""

    def meet(visitor: str) -> str:
        """Meet the other visitors."""
        ledger.note("meet", visitor=visitor)
        meeting.join_blocking()
        return f"{visitor} met the others"

    return meet
