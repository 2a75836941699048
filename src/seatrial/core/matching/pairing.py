"""Who belongs to whom: one to one, as many pairs as possible."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

__all__ = [
    "maximum_matching",
]


def maximum_matching(edges: Sequence[Sequence[int]]) -> list[int | None]:
    """For each left node its own right node, or None; as many pairs as possible.

    `edges[left]` lists the right nodes that suit. Left nodes that come first are served first: a later one never
    takes a partner away without giving another (augmenting paths, Berge 1957).
    """
    partner: list[int | None] = [None] * len(edges)
    owner: dict[int, int] = {}
    for left in range(len(edges)):
        _augment(left, edges, partner, owner)
    return partner


def _augment(start: int, edges: Sequence[Sequence[int]], partner: list[int | None], owner: dict[int, int]) -> None:
    reached: dict[int, int] = {}
    queue = deque([start])
    while queue:
        left = queue.popleft()
        for right in edges[left]:
            if right in reached:
                continue
            reached[right] = left
            if right not in owner:
                _flip(right, reached, partner, owner)
                return
            queue.append(owner[right])


def _flip(right: int | None, reached: Mapping[int, int], partner: list[int | None], owner: dict[int, int]) -> None:
    while right is not None:
        left = reached[right]
        freed = partner[left]
        partner[left], owner[right] = right, left
        right = freed
