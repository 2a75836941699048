"""An environment of their own for the peers, pinned, made once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["peers_python"]


def peers_python(folder: Path, pins: Path) -> tuple[Path | None, str]:
    """The interpreter that has exactly these pins, made in `folder` unless it is there; else None and the reason."""
    made_from = folder / "constraints.txt"
    if not (made_from.is_file() and made_from.read_bytes() == pins.read_bytes()):
        reason = _make(folder, pins)
        if reason:
            return None, f"not installed ({reason})"
        shutil.copyfile(pins, made_from)
    return _python(folder), ""


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _make(folder: Path, pins: Path) -> str:
    """Make it; gives what went wrong, or an empty text."""
    try:
        venv.create(folder, with_pip=True, clear=True)
        quick = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
        install = [str(_python(folder)), "-m", "pip", "install", *quick, "--no-deps", "--requirement", str(pins)]
        done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error).splitlines()[0]
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (errors or ["pip failed"])[0].removeprefix("ERROR: ") if done.returncode else ""
