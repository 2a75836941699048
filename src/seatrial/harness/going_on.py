"""The command that goes on with a run, in words that can be typed: one way to say it, whatever ended the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["AS_THE_RUN_HAD_IT", "option_of", "resume_command"]

AS_THE_RUN_HAD_IT = frozenset(
    {"select", "suite", "tag", "risk", "keyword", "failed_from", "output", "resume", "seed", "list_only"}
)
"""Options that a resumed run takes from its folder, or that are said anew."""
_SPELLED = {
    "keyword": "-k",
    "timeout_s": "--timeout",
    "list_only": "--list",
    "as_json": "--json",
    "baseline_file": "--baseline",
}


def option_of(name: str) -> str:
    """The option of `seatrial run` that has this name in Python."""
    return _SPELLED.get(name) or "--" + name.rstrip("_").replace("_", "-")


def resume_command(folder: Path | str, given: Mapping[str, Any], budget: Mapping[str, float] | None = None) -> str:
    """`seatrial run ...` as it goes on with the run in `folder`.

    `given`: the options that the run was begun with, by their names in Python; `budget`: what should be enough for
    the rest, in place of what they say.
    """
    options = {**given, **(budget or {})}
    words = [word for name, value in options.items() if name not in AS_THE_RUN_HAD_IT for word in _words(name, value)]
    return shlex.join(["seatrial", "run", *words, "--output", str(folder), "--resume"])


def _words(name: str, value: Any) -> Iterator[str]:
    option = option_of(name)
    if isinstance(value, bool) or name == "verbose":
        yield from [option] * int(value)
        return
    for item in value if isinstance(value, (tuple, list)) else [value]:
        yield from (option, f"{item:.12g}" if isinstance(item, float) else str(item))
