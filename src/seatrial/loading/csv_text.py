"""Cases as a CSV table: the first row names keys, every further row is a case.

A column is named as a key of a case, long or short; a dot leads into a mapping (`expected.outcome.refund_status`).
What a cell is depends on its key:

- text (`id`, `suite`, `query`, `input.message`, `expected.answer` ...): the cell as it is;
- a list of names or texts (`tags`, `expected_tools` ...): JSON when the cell begins with `[`, else items divided
  by `;`;
- a mapping (`input`, `metadata`, `expected.answer` too): JSON when the cell begins with `{`;
- a number or boolean (`max_steps`, `deterministic` ...): read as JSON;
- any value (below `input`, `metadata`, `expected.outcome` ...): JSON when it is valid JSON, else text. So `750` is
  a number, `007` is text, and `"750"` with its quotes is text.

An empty cell leaves the key out. Cells are divided by commas; every row has as many as the first.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.json_text import read_json
from seatrial.loading.located import Map, Seq, Spot, located

__all__ = ["read_csv"]

Kinds = Callable[[str], frozenset[str]]
"""What the key of a column takes: names among text, list, mapping, value."""


def read_csv(text: str, path: str, kinds: Kinds) -> Seq:
    """The rows as a located list of mappings. Raises InputError with every problem."""
    rows = _rows(text, path)
    header = next(rows, None)
    if header is None:
        return Seq(Spot(path, 1, 1))
    names = [name.strip() for name in header[1]]
    problems = _header_problems(names, Spot(path, header[0]))
    table = Seq(Spot(path, header[0]))
    for line, cells in rows:
        if len(cells) != len(names):
            message = f"this row has {len(cells)} cells, the first has {len(names)}"
            problems.append(Diagnostic("csv-row", message, path, line, hint="put a cell that holds a comma in quotes"))
        elif not problems:
            spot = Spot(path, line)
            table.put(_row(names, cells, spot, kinds), spot)
    if problems:
        raise InputError(problems)
    return table


def _rows(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """(first line, cells) of every row that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(Diagnostic("csv-syntax", readable(str(error)), path, line)) from error


def _header_problems(names: list[str], spot: Spot) -> list[Diagnostic]:
    problems = []
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        hint = "save the table with commas"
        problems.append(Diagnostic("csv-row", "the columns are not divided by commas", spot.path, spot.line, hint=hint))
    if any(not part for name in names for part in name.split(".")):
        message = "a column without a name; the first row names the keys"
        problems.append(Diagnostic("csv-row", message, spot.path, spot.line))
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"two columns are named {readable(name)!r}"
        problems.append(Diagnostic("duplicate-key", message, spot.path, spot.line))
    return problems


def _row(names: list[str], cells: list[str], spot: Spot, kinds: Kinds) -> Map:
    row = Map(spot)
    for name, cell in zip(names, cells, strict=True):
        if cell.strip():
            _put(row, name, _cell(cell, kinds(name), spot), spot)
    return row


def _put(row: Map, name: str, value: Any, spot: Spot) -> None:
    *parents, last = name.split(".")
    mapping = row
    for parent in parents:
        below = mapping.get(parent, Map(spot))
        if not isinstance(below, Map):
            message = f"the column {readable(name)!r} leads into {readable(parent)!r}, which is no mapping in this row"
            raise InputError(Diagnostic("csv-row", message, spot.path, spot.line))
        mapping.put(parent, below, spot, spot)
        mapping = below
    mapping.put(last, value, spot, spot)


def _cell(cell: str, kinds: frozenset[str], spot: Spot) -> Any:
    text = cell.strip()
    if ("list" in kinds and text.startswith("[")) or ("mapping" in kinds and text.startswith("{")):
        return located(read_json(text, spot.path, first_line=spot.line or 1), spot)
    if "list" in kinds:
        return located([item.strip() for item in text.split(";") if item.strip()], spot)
    return cell if "text" in kinds and "value" not in kinds else _json_or_text(cell, spot)


def _json_or_text(cell: str, spot: Spot) -> Any:
    try:
        return located(read_json(cell), spot)
    except InputError:
        return cell
