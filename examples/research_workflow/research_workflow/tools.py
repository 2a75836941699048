"""What the agents can use."""

from __future__ import annotations

__all__ = ["add", "multiply", "search_notes"]

NOTES = (
    "The Northern Light is 42 metres long and carries 120 passengers.",
    "The Sea Swallow is 31 metres long and carries 85 passengers.",
    "Sea trials of both ships were held in May.",
)


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


def search_notes(query: str) -> str:
    """Search the notes about the ships; gives every note that names one of those in the query."""
    ships = [name for name in ("Northern Light", "Sea Swallow") if name in query]
    return "\n".join(note for note in NOTES if any(name in note for name in ships)) or "No note."
