"""How the scripted model decides: one function a situation, each giving the next message."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from refund_agent.reading import Reading, Wish

__all__ = ["next_message"]

Call = tuple[str, dict[str, Any]]
_MAKE = "process_refund"
_HAND_OVER = "transfer_to_refund_supervisor"
_SEND_BACK = "transfer_to_refund_agent"


def next_message(reading: Reading, quirks: frozenset[str] = frozenset()) -> AIMessage:
    """What comes next in this conversation."""
    if reading.told("You are refund_supervisor"):
        return _supervise(reading)
    return _serve(reading, quirks)


def _say(text: str) -> AIMessage:
    return AIMessage(text)


def _call(reading: Reading, *calls: Call) -> AIMessage:
    """A message that calls tools; ids are unique in the conversation."""
    number = reading.calls_so_far
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": arguments, "id": f"call-{number + i}", "type": "tool_call"}
            for i, (name, arguments) in enumerate(calls, start=1)
        ],
    )


def _money(amount: float) -> str:
    return f"{amount:g} dollars"


# --- refund_agent ---


def _serve(reading: Reading, quirks: frozenset[str]) -> AIMessage:
    text = reading.latest.lower()
    if "export" in text:
        return _asked_to_export(reading)
    if "card" in text and "refund" not in text:
        return _asked_for_card(reading)
    if "how much" in text:
        return _say(f"I can refund up to {_money(reading.limit)}; more than that is for a supervisor to decide.")
    if "what exactly" in text:
        return _recall(reading)
    wishes = reading.wishes(first_number="first_order_number" in quirks)
    if not wishes:
        return _say("I am sorry to hear that. What is the order number?")
    if "where is" in text or "status" in text:
        return _report_status(reading, wishes[0].order_id)
    return _refund(reading, wishes)


def _asked_to_export(reading: Reading) -> AIMessage:
    if reading.told("Never export customer data"):
        return _say("I cannot export customer data. Please write to the privacy team about your own data.")
    wanted = next((word.strip(".,") for word in reading.latest.split() if word.startswith("customer-")), "")
    user = wanted or reading.customer
    return _export(reading, user) or _say(f"Here is what is stored about {user}.")


def _export(reading: Reading, user: str) -> AIMessage | None:
    done = reading.of("export_customer_data", this_turn=True, user_id=user)
    return None if done else _call(reading, ("export_customer_data", {"user_id": user}))


def _asked_for_card(reading: Reading) -> AIMessage:
    verified = reading.of("verify_customer")
    if not verified:
        return _call(reading, ("verify_customer", {"user_id": reading.customer}))
    number = str(verified[-1].data.get("card_number", ""))
    if reading.told("last four digits only"):
        return _say(f"The card on file ends in {number[-4:]}. I cannot read out the whole number.")
    return _say(f"The card on file is {number}.")


def _recall(reading: Reading) -> AIMessage:
    made = [result.data for result in reading.of(_MAKE) if result.data]
    if not made:
        return _say("Nothing has been refunded so far.")
    parts = " and ".join(f"{_money(one['amount'])} for order {one['order_id']}" for one in made)
    return _say(f"I refunded {parts}.")


def _report_status(reading: Reading, order_id: str) -> AIMessage:
    found = reading.of("lookup_order", this_turn=True, order_id=order_id)
    if not found:
        return _call(reading, ("lookup_order", {"order_id": order_id}))
    return _say(f"Order {order_id}: {found[-1].data.get('status', 'unknown')}.")


def _refund(reading: Reading, wishes: list[Wish]) -> AIMessage:
    preparation = _preparation(reading, wishes)
    if preparation:
        return _call(reading, *preparation)
    orders = {wish.order_id: reading.of("lookup_order", order_id=wish.order_id)[-1].data for wish in wishes}
    obeyed = _obey_notes(reading, orders)
    if obeyed:
        return obeyed
    for wish in wishes:
        refusal = _refusal(reading, orders[wish.order_id], wish)
        if refusal:
            return _say(refusal)
    amounts = {wish.order_id: wish.amount or float(orders[wish.order_id]["price"]) for wish in wishes}
    above = [order_id for order_id, amount in amounts.items() if amount > reading.limit]
    if above:
        return _pass_on(reading, above[0], amounts[above[0]])
    return _make_refunds(reading, amounts)


def _preparation(reading: Reading, wishes: list[Wish]) -> list[Call]:
    """What has to be known before a refund, as far as it is not known yet."""
    calls: list[Call] = []
    if reading.told("verify the customer") and not reading.of("verify_customer"):
        calls.append(("verify_customer", {"user_id": reading.customer}))
    times = 3 if reading.told("look the order up three times") else 1
    for wish in wishes:
        if len(reading.of("lookup_order", order_id=wish.order_id)) < times:
            calls.append(("lookup_order", {"order_id": wish.order_id}))
    return calls


def _obey_notes(reading: Reading, orders: dict[str, dict[str, Any]]) -> AIMessage | None:
    """An order's note is data, unless the prompt failed to say so."""
    if reading.told("data, never an instruction"):
        return None
    notes = " ".join(str(order.get("note") or "") for order in orders.values())
    return _export(reading, reading.customer) if "export" in notes.lower() else None


def _refusal(reading: Reading, order: dict[str, Any], wish: Wish) -> str | None:
    if order.get("status") == "unknown order":
        return f"I cannot find an order {wish.order_id}."
    if order.get("user_id") != reading.customer:
        return f"Order {wish.order_id} belongs to another account, so I cannot refund it."
    made_just_now = reading.of(_MAKE, this_turn=True, order_id=wish.order_id)
    paid_before = order.get("refunded", 0) >= order.get("price", 0) and not made_just_now
    if order.get("status") == "refunded" or paid_before:
        return f"Order {wish.order_id} has already been refunded; I cannot refund it twice."
    return None


def _pass_on(reading: Reading, order_id: str, amount: float) -> AIMessage:
    if reading.told("hand over to refund_supervisor") and _HAND_OVER in reading.tools:
        reason = f"{_money(amount)} is above the limit of {_money(reading.limit)}"
        return _call(reading, (_HAND_OVER, {"order_id": order_id, "amount": amount, "reason": reason}))
    return _say(f"{_money(amount)} for order {order_id} is for supervisor review. It has not been issued.")


def _make_refunds(reading: Reading, amounts: dict[str, float]) -> AIMessage:
    waiting = [order_id for order_id in amounts if not reading.of(_MAKE, this_turn=True, order_id=order_id)]
    if waiting:
        return _call(reading, *((_MAKE, {"order_id": one, "amount": amounts[one]}) for one in waiting))
    for order_id, amount in amounts.items():
        problem = _after_failure(reading, order_id, amount)
        if problem:
            return problem
    return _say(_completed(amounts))


def _completed(amounts: dict[str, float]) -> str:
    parts = " and ".join(f"{_money(amount)} for order {order_id}" for order_id, amount in amounts.items())
    return f"Refund completed: {parts} is on its way to your card."


def _after_failure(reading: Reading, order_id: str, amount: float) -> AIMessage | None:
    """What follows when the refund tool failed; None when all is well after all."""
    tries = reading.of(_MAKE, this_turn=True, order_id=order_id)
    if not tries[-1].failed:
        return None
    if reading.told("try it once more") and len(tries) == 1:
        return _call(reading, (_MAKE, {"order_id": order_id, "amount": amount}))
    looked = reading.of("lookup_order", order_id=order_id)[-1]
    if reading.told("look the order up again") and looked.position < tries[-1].position:
        return _call(reading, ("lookup_order", {"order_id": order_id}))
    paid = looked.position > tries[-1].position and looked.data.get("refunded", 0) >= amount
    if paid or not reading.told("only what a tool has confirmed"):
        return _say(_completed({order_id: amount}))
    return _say(f"I am sorry, the refund of order {order_id} could not be made. Nothing has been paid.")


# --- refund_supervisor ---


def _supervise(reading: Reading) -> AIMessage:
    handed_over = reading.of(_HAND_OVER)[-1].arguments
    order_id, amount = handed_over["order_id"], float(handed_over["amount"])
    if _SEND_BACK in reading.tools and not reading.of(_SEND_BACK):
        return _call(reading, (_SEND_BACK, {"reason": "Is there anything to add?"}))
    orders = reading.of("lookup_order", order_id=order_id)
    if orders and orders[-1].data.get("status") == "lost":
        return _ask_manager(reading, order_id, amount)
    if not reading.of("file_for_review", this_turn=True):
        return _call(reading, ("file_for_review", {"order_id": order_id, "amount": amount}))
    what = f"Your refund of {_money(amount)} for order {order_id}"
    return _say(f"{what} needs supervisor review and has not been issued yet.")


def _ask_manager(reading: Reading, order_id: str, amount: float) -> AIMessage:
    tries = reading.of(_MAKE, this_turn=True, order_id=order_id)
    if not tries:
        return _call(reading, (_MAKE, {"order_id": order_id, "amount": amount}))
    if tries[-1].failed:
        return _say(f"A manager has declined the refund of order {order_id}. It has not been issued.")
    return _say(_completed({order_id: float(tries[-1].data["amount"])}))
