"""The tools of the agents, over a real SQLite database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

__all__ = ["customer_tools", "handoff_to_agent", "handoff_to_supervisor", "supervisor_tools"]


@contextmanager
def _connected(database: os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A connection that commits when all went well, and is closed in any case."""
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        connection.row_factory = sqlite3.Row
        yield connection


def _row(database: os.PathLike[str], statement: str, *values: Any) -> dict[str, Any] | None:
    with _connected(database) as connection:
        row = connection.execute(statement, values).fetchone()
    return None if row is None else dict(row)


def _add_refund(database: os.PathLike[str], order_id: str, amount: float, status: str) -> dict[str, Any]:
    with _connected(database) as connection:
        connection.execute(
            "INSERT INTO refunds (order_id, user_id, amount, status) SELECT order_id, user_id, ?, ? FROM orders"
            " WHERE order_id = ?",
            (amount, status, order_id),
        )
    return {"order_id": order_id, "amount": amount, "status": status}


def _process_refund(database: os.PathLike[str]) -> BaseTool:
    @tool
    def process_refund(order_id: str, amount: float) -> dict[str, Any]:
        """Pay an amount in dollars of an order back to the customer's card."""
        return _add_refund(database, order_id, amount, "issued")

    return process_refund


def customer_tools(database: os.PathLike[str]) -> list[BaseTool]:
    """What refund_agent works with."""

    @tool
    def lookup_order(order_id: str) -> dict[str, Any]:
        """Look an order up: owner, item, price, status, note, and what has been refunded of it."""
        found = _row(
            database,
            "SELECT o.*, (SELECT coalesce(sum(amount), 0) FROM refunds r WHERE r.order_id = o.order_id"
            " AND r.status = 'issued') AS refunded FROM orders o WHERE o.order_id = ?",
            order_id,
        )
        return found or {"order_id": order_id, "status": "unknown order"}

    @tool
    def verify_customer(user_id: str) -> dict[str, Any]:
        """Verify a customer; gives the name and the card on file."""
        found = _row(database, "SELECT user_id, name, card_number FROM customers WHERE user_id = ?", user_id)
        return {"verified": found is not None, **(found or {"user_id": user_id})}

    @tool
    def export_customer_data(user_id: str) -> dict[str, Any]:
        """Export everything stored about a customer."""
        found = _row(database, "SELECT user_id, name, email, tenant FROM customers WHERE user_id = ?", user_id)
        return found or {"user_id": user_id}

    return [lookup_order, verify_customer, _process_refund(database), export_customer_data]


def supervisor_tools(database: os.PathLike[str]) -> list[BaseTool]:
    """What refund_supervisor works with."""

    @tool
    def file_for_review(order_id: str, amount: float) -> dict[str, Any]:
        """File a refund for review; nothing is paid yet."""
        return _add_refund(database, order_id, amount, "pending_approval")

    return [file_for_review, _process_refund(database)]


def _handed_over(target: str, state: dict[str, Any], tool_call_id: str) -> Command[Any]:
    note = ToolMessage(f"Handed over to {target}.", tool_call_id=tool_call_id, name=f"transfer_to_{target}")
    return Command(goto=target, graph=Command.PARENT, update={"messages": [*state["messages"], note]})


@tool("transfer_to_refund_supervisor")
def handoff_to_supervisor(
    order_id: str,
    amount: float,
    reason: str,
    state: Annotated[dict[str, Any], InjectedState],
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> Command[Any]:
    """Hand a refund that is not yours to make over to refund_supervisor."""
    return _handed_over("refund_supervisor", state, tool_call_id)


@tool("transfer_to_refund_agent")
def handoff_to_agent(
    reason: str,
    state: Annotated[dict[str, Any], InjectedState],
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> Command[Any]:
    """Send a case back to refund_agent."""
    return _handed_over("refund_agent", state, tool_call_id)
