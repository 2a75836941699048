"""The whole table, in a tiny size, of Seatrial and the floor: every row is there with a verdict. No time is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.__main__ import main
from benchmarks.table import OURS

pytestmark = pytest.mark.slow

ROWS = (
    *("overhead of 5 ", "overhead of 10 ", "overhead of 20 ", "10 async trials", "10 blocking trials"),
    *("5 trials x 20 calls x 2 KB", "5 trials x 20 calls x 2 KB, peak", "5 trials x 20 calls x 2 KB, on disk"),
    *("5 trials x 20 calls x 2 KB, through environment.tool", "peak memory", "regrade of 10 ", "regrade, peak memory"),
    *("compare of two runs", "load 10 cases, one file", "load 10 cases, a file each", "import over bare Python"),
    *("--help over", "check of one case", "time to the first trial", "journal", "resume", "SIGKILL half way"),
)
ALONE = ("through environment.tool", "a file each", "--help", "check of", "resume")
"""Rows in which the floor has nothing to set beside."""


def test_every_row_is_there_with_a_verdict_and_our_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "results.json"
    assert main(["--size", "tiny", "--no-peers", "--results", str(kept)]) == 0
    data = json.loads(kept.read_text(encoding="utf-8"))
    assert [row["name"].startswith(name) for row, name in zip(data["rows"], ROWS, strict=True)] == [True] * len(ROWS)
    printed = capsys.readouterr().out
    for row in data["rows"]:
        assert row["verdict"] in ("met", "MISSED"), row["name"]
        assert row["cells"][OURS]["values"], row["name"]
        assert any(alone in row["name"] for alone in ALONE) or row["cells"]["floor"]["values"], row["name"]
        assert row["verdict"] == "met" or row["profile"] or "SIGKILL" in row["name"], row["name"]
        assert f"{row['name']}, {row['unit']}" in printed
    lost = data["rows"][-1]["cells"]
    assert (lost[OURS]["value"], lost["floor"]["value"]) == (0, 0)
    assert "Sizes: tiny" in printed
    assert f"Python {data['python']}" in printed
