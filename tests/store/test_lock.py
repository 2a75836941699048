"""A run folder has one writer; a lock outlives no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.store.lock import LOCK_NAME, FolderLock

HOLD = """
import os, sys
from pathlib import Path
from seatrial.store.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
if sys.argv[2] == "fork" and os.fork() == 0:
    os.close(1)
    sys.stdin.read()
    os._exit(0)
print("held", flush=True)
sys.stdin.read()
"""


def holder(folder: Path, how: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_folder_is_held_once_in_a_process_too(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(UsageError, match=f"process {os.getpid()} is still writing this run"):
        FolderLock(tmp_path)
    lock.release()
    lock.release()
    FolderLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_dead_process_left_behind_locks_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("1\n")
    lock = FolderLock(tmp_path)
    assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"
    lock.release()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["", "fork"])
def test_a_live_process_holds_it_until_it_is_killed_even_when_it_forked(tmp_path: Path, how: str) -> None:
    process = holder(tmp_path, how)
    with pytest.raises(UsageError, match=f"process {process.pid} is still writing"):
        FolderLock(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / LOCK_NAME).exists()
    FolderLock(tmp_path).release()
    process.communicate()
