"""Running a program inside bubblewrap: no network, a read-only file system, a private /tmp.

Writable are only the trial's own folder (its working folder and database) and /tmp. The host's files stay readable;
environment variables whose names say that they are secret are withheld. What is claimed is probed first, by running a
shell in the same sandbox.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.loading.variables import names_a_secret

__all__ = ["enforced", "inside", "without_secrets"]

_ALWAYS = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108  bubblewrap's own
    *("--unshare-all", "--die-with-parent", "--new-session"),
)
_PROBE = "test ! -w / && test ! -w /etc && test -w /tmp && test $$ -lt 100 && grep -c : /proc/net/dev"
"""Prints the number of network interfaces, after all else holds; in a network of its own there is only loopback."""


def inside(command: Sequence[str], *, folder: Path, writable: Path, readable: Sequence[str] = ()) -> list[str]:
    """The command as it is run in the sandbox. `folder` is where it starts, `readable` what /tmp may not hide."""
    shown = [word for path in dict.fromkeys(readable) for word in ("--ro-bind-try", path, path)]
    own = ["--bind", str(writable), str(writable), "--chdir", str(folder)]
    return ["bwrap", *_ALWAYS, *shown, *own, "--", *command]


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment variables but those whose names hold KEY, TOKEN, SECRET or PASSWORD."""
    return {name: value for name, value in environment.items() if not names_a_secret(name)}


@functools.cache
def enforced() -> Mapping[str, Any]:
    """What the sandbox keeps from a program, as found out by trying. UsageError where bubblewrap does not work."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        raise UsageError("agent sandbox: bubblewrap needs Linux and the command bwrap (Debian package bubblewrap)")
    command = ["bwrap", *_ALWAYS, "--", "sh", "-c", _PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603  fixed words
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"agent sandbox: bubblewrap does not work here: {error}") from error
    if done.returncode != 0 or done.stdout.strip() != "1":
        said = done.stderr.strip() or f"a probe inside it gave exit code {done.returncode}, {done.stdout.strip()!r}"
        raise UsageError(f"agent sandbox: bubblewrap does not work here: {said}")
    return {
        "by": "bubblewrap",
        "enforced": ["no network", "read-only files", "private /tmp", "own processes", "no secret variables"],
    }
