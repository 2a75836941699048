"""Exceptions that would end the event loop, kept in where a framework runs a tool in a task of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["AgentLeft", "kept_in", "let_out"]


class AgentLeft(BaseException):
    """A tool raised SystemExit or KeyboardInterrupt, which in a task would end the loop that other trials run in."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


@contextmanager
def kept_in() -> Iterator[None]:
    """Around a tool's body: what would end the loop leaves as AgentLeft."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        raise AgentLeft(error) from error


@contextmanager
def let_out() -> Iterator[None]:
    """Around the whole agent: AgentLeft leaves as what the tool raised."""
    try:
        yield
    except AgentLeft as left:
        raise left.error from left
