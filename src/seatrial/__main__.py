"""`python -m seatrial` and the `seatrial` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code."""
    from seatrial.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
