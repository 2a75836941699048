"""Number options of the command line, whichever command has them."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from seatrial.cli import cli


def number_options(command: click.Command, *path: str) -> Iterator[tuple[str, click.Option, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from number_options(found, *path, name)
        return
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.type.name.startswith(("float", "integer")):
            yield " ".join((*path, parameter.opts[-1])), parameter, command


OPTIONS = [found for found in number_options(cli) if not found[1].count]


def test_the_number_options_are_found() -> None:
    found = {name for name, _, _ in OPTIONS}
    assert {"run --timeout", "isolate --timeout", "run --max-cost", "approve --trials", "isolate --orders"} <= found


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "text", "1e999"])
@pytest.mark.parametrize(("name", "option", "command"), OPTIONS, ids=[name for name, _, _ in OPTIONS])
def test_what_is_no_number_in_range_is_refused_naming_the_option(
    name: str, option: click.Option, command: click.Command, text: str
) -> None:
    if "seed" in name and text == "-1":  # any whole number
        assert option.type_cast_value(click.Context(command), text) == -1
        return
    with pytest.raises(click.BadParameter) as refused:
        option.type_cast_value(click.Context(command), text)
    assert name.rpartition(" ")[2] in refused.value.format_message()
