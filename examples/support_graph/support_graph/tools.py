"""What the agent can use. `search_web` is never called in a trial: the fixture's stand-in answers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from langchain_core.tools import BaseTool, tool

__all__ = ["TOOLS"]


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


@tool
def divide(a: float, b: float) -> float | str:
    """Divide a by b."""
    return "error: a number cannot be divided by zero" if b == 0 else a / b


@cache
def _articles() -> dict[str, str]:
    text = Path(__file__).with_name("knowledge_base.json").read_text(encoding="utf-8")
    articles: dict[str, str] = json.loads(text)
    return articles


@tool
def search_knowledge_base(query: str) -> str:
    """Search the shop's own articles: shipping, returns, opening hours."""
    words = set(query.lower().split())
    found = [text for topic, text in _articles().items() if words & set(topic.split())]
    return "\n".join(found) or "No article."


@tool
def search_web(query: str) -> str:
    """Search the web."""
    raise RuntimeError(f"the web search for {query!r} needs a provider; plug yours in here")


TOOLS: list[BaseTool] = [add, multiply, divide, search_knowledge_base, search_web]
