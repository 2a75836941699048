"""Run the kit from a shell: `python -m seatrial.testing.conformance my_package.my_framework`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import ExitCode, UsageError
from seatrial.testing.conformance.matrix import matrix
from seatrial.testing.conformance.offered import frameworks_at
from seatrial.testing.conformance.proving import check

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what is named and print a line a situation; the exit code says whether nothing failed."""
    given = _parser().parse_args(arguments)
    try:
        reports = [check(framework) for place in given.frameworks for framework in frameworks_at(place)]
        if given.matrix is not None:
            _write(given.matrix, matrix(reports))
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return ExitCode.USAGE
    sys.stdout.writelines(f"{report}\n" for report in reports)
    return ExitCode.PASS if all(report.passed for report in reports) else ExitCode.FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m seatrial.testing.conformance",
        description="Prove adapters: drive scripted situations through them and check what their traces say.",
    )
    parser.add_argument(
        "frameworks",
        nargs="+",
        metavar="FRAMEWORK",
        help="module with FRAMEWORKS, or module:object; the working folder is importable",
    )
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="write the table situation by framework to FILE")
    return parser


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--matrix {path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(main())
