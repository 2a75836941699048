"""README and documentation do what they say, block by block."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from executable_docs import REPOSITORY, blocks_of, pages, run_page

NOT_RUN: dict[str, list[str]] = {
    "docs/adapters/http.md": ["part of a service"],
    "docs/adapters/mcp.md": ["needs a server"],
    "docs/cluster.md": ["needs several machines"],
    "README.md": ["installing needs the network", "CI runs both on every change"],
    "docs/running.md": ["zstd is no part of Seatrial", "a run that was cut off"],
}
"""Why blocks are not run, by page. A new one has to be named here, so that none slips in."""
NEEDS = {"docs/adapters/command.md": "node"}
"""Commands that a page's blocks need, and not every machine has."""


def _name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the pages' commands are for a POSIX shell")
@pytest.mark.parametrize("page", pages(), ids=_name)
def test_every_block_of_the_page_is_true(page: Path, tmp_path: Path) -> None:
    needed = NEEDS.get(_name(page))
    if needed is not None and shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")
    run_page(page.read_text(encoding="utf-8"), _name(page), tmp_path)


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_only_these_blocks_are_not_run(page: Path) -> None:
    blocks = list(blocks_of(page.read_text(encoding="utf-8"), _name(page)))
    assert [block.marks["not run"] for block in blocks if block.action == "not run"] == NOT_RUN.get(_name(page), [])
