"""Which words of a command name files that have to be in the project."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

__all__ = ["scripts_of"]

_SCRIPTS = (".py", ".js", ".mjs", ".sh")
_INTERPRETERS = re.compile(r"(python[\d.]*|node|deno|bun|ruby|perl|php|(ba|z|da|k)?sh)(\.exe)?")
_PROGRAM_TEXT = ("-c", "-e", "-m", "-p", "--eval", "--print")
"""Options of interpreters after which comes a program or a module, not a file."""


def scripts_of(command: Sequence[str]) -> Iterator[str]:
    """Words that look like a file: those that end as scripts do, and with a slash what an interpreter is to run."""
    runs_file = bool(_INTERPRETERS.fullmatch(PurePath(command[0]).name))
    for before, word in itertools.pairwise(command):
        if runs_file and before in _PROGRAM_TEXT:
            return  # the rest is the program's own
        if word.startswith("-") or "://" in word or any(letter.isspace() for letter in word):
            continue
        of_option = before.startswith("-")
        if word.lower().endswith(_SCRIPTS):
            if runs_file or not of_option:  # what a program's own option names may be a file that it is to write
                yield word
        elif runs_file and not of_option and "/" in word:
            yield word
        runs_file = False
