"""A run that is killed at any moment leaves files that read."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import seatrial as api
from projects import write_project


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_bl_098_killed_at_random_moments_never_leaves_a_file_that_does_not_parse(tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"c{n}", "input": "x" * 2000, "expected": {"answer": "x"}}) for n in range(400)]
    write_project(tmp_path, {"cases/all.jsonl": "\n".join(lines) + "\n"})
    chance = random.Random(98)
    kept = []
    for attempt in range(20):
        folder = tmp_path / f"run{attempt}"
        wanted = chance.randrange(0, 400)
        process = subprocess.Popen(
            [sys.executable, "-m", "seatrial", "run", "-q", "--output", str(folder)],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        trials = folder / "trials.jsonl"
        while process.poll() is None and (not trials.exists() or trials.read_bytes().count(b"\n") < wanted):
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate()
        run = api.load(folder)
        assert [run.trace(record).output for record in run.trials] == [record.output for record in run.trials]
        kept.append(len(run.trials))
        if (folder / "results.json").exists():
            json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert any(0 < count < 400 for count in kept)
