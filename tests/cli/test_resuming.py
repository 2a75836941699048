"""The command that goes on with a run is the one that began it, in the words of whoever typed it."""

from __future__ import annotations

import pytest

from seatrial.cli.resuming import command_to_go_on
from seatrial.cli.run import run


@pytest.mark.parametrize(
    ("typed", "resumed"),
    [
        ([], "seatrial run --output runs/r1 --resume"),
        (["smoke", "--tag", "a", "-k", "x", "--risk", "high"], "seatrial run --output runs/r1 --resume"),
        (["--failed-from", "latest", "--seed", "3"], "seatrial run --output runs/r1 --resume"),
        (["--output", "elsewhere", "--resume"], "seatrial run --output runs/r1 --resume"),
        (
            ["--trials=3", "--build", "good one", "-v", "-v", "--json"],
            "seatrial run --build 'good one' --trials 3 --verbose --verbose --json --output runs/r1 --resume",
        ),
        (
            ["--set", "a=1", "--set", "b='2'", "--timeout", "2.5", "-q"],
            """seatrial run --timeout 2.5 --set a=1 --set 'b='"'"'2'"'"'' --quiet --output runs/r1 --resume""",
        ),
    ],
)
def test_a_run_is_gone_on_with_by_its_own_command_without_what_its_folder_knows(typed: list[str], resumed: str) -> None:
    with run.make_context("run", list(typed)):
        assert command_to_go_on("runs/r1") == resumed
