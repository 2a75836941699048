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

Every problem has the line and column of its cell; what is wrong with a column is said once, at its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from seatrial.core.grading import count
from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, InputError, did_you_mean
from seatrial.loading.json_text import read_json
from seatrial.loading.located import Map, Seq, Spot, located, problem_at

__all__ = ["read_csv"]

Kinds = Callable[[str], frozenset[str]]
"""What the key of a column takes: names among text, list, mapping, value."""
_CELL = re.compile(r'"((?:[^"]|"")*)"(?=[,\r\n]|\Z)|([^",\r\n][^,\r\n]*)?')
_LINE_END = re.compile(r"\r\n|\r|\n")


class _Cell(NamedTuple):
    """One cell as written, without its quotes."""

    text: str
    at: Spot


@dataclass(frozen=True)
class _Column:
    """A column by its name in the first row."""

    name: str
    at: Spot
    kinds: frozenset[str]


def read_csv(text: str, path: str, kinds: Kinds, problems: list[Diagnostic] | None = None) -> Seq:
    """The rows as a located list of mappings.

    Raises InputError with every problem; with a list of `problems` they are added to it, and the rows that can be read
    are given.
    """
    found: list[Diagnostic] = []
    table = _table(text, path, kinds, found)
    if problems is None and found:
        raise InputError(found)
    if problems is not None:
        problems.extend(found)
    return table


def _table(text: str, path: str, kinds: Kinds, problems: list[Diagnostic]) -> Seq:
    rows = _rows(text, path, problems)
    header = next(rows, None)
    if header is None:
        return Seq(Spot(path, 1, 1))
    table = Seq(header[0].at)
    if len(header) == 1 and re.search(r"[;\t]", header[0].text):
        hint = "save the table with commas"
        problems.append(problem_at(header[0].at, "csv-row", "the columns are not divided by commas", hint))
        return table
    columns = _columns(header, kinds, problems)
    for cells in rows:
        if len(cells) == len(header):
            row = _row(columns, cells, problems)
            table.put(row, row.at)
        else:
            message = f"this row has {count(len(cells), 'cell')}, the first has {len(header)}"
            hint = "put a cell that holds a comma in quotes"
            problems.append(problem_at(cells[0].at, "csv-row", message, hint))
    return table


def _rows(text: str, path: str, problems: list[Diagnostic]) -> Iterator[list[_Cell]]:
    """The cells of every row that is not blank. Ends at a cell whose quotes are not closed."""
    cells: list[_Cell] = []
    position = start = 0
    line = 1
    while position < len(text) or cells:
        match = _CELL.match(text, position)
        at = Spot(path, line, position - start + 1)
        end = match.end() if match else position
        if match is None or (end == position and text[position : position + 1] == '"'):
            hint = 'close the quotes, and write " inside them as ""'
            problems.append(problem_at(at, "csv-syntax", "the quotes of this cell do not end where it ends", hint))
            return
        cells.append(_Cell(match[2] or "" if match[1] is None else match[1].replace('""', '"'), at))
        for inner in _LINE_END.finditer(text, position, end):
            line, start = line + 1, inner.end()
        if text[end : end + 1] == ",":
            position = end + 1
            continue
        if any(cell.text.strip() for cell in cells):
            yield cells
        cells = []
        line_end = _LINE_END.match(text, end)
        position = start = line_end.end() if line_end else len(text)
        line += 1


def _columns(header: list[_Cell], kinds: Kinds, problems: list[Diagnostic]) -> list[_Column | None]:
    """The columns in their order; None for one that cannot be used."""
    columns: list[_Column | None] = []
    for cell in header:
        name = cell.text.strip()
        if any(not part for part in name.split(".")):
            message = "a column without a name; the first row names the keys"
            problems.append(problem_at(cell.at, "csv-row", message))
            columns.append(None)
        elif any(column is not None and column.name == name for column in columns):
            problems.append(problem_at(cell.at, "duplicate-key", f"two columns are named {name!r}", "keep one of them"))
            columns.append(None)
        else:
            columns.append(_Column(name, cell.at, kinds(name)))
    names = [column.name for column in columns if column is not None]
    if "id" not in names:
        at = header[0].at._replace(column=None)
        problems.append(problem_at(at, "missing-column", "there is no column `id`", did_you_mean("id", names)))
        columns.append(_Column("id", at, frozenset(("text",))))
    return columns


def _row(columns: list[_Column | None], cells: list[_Cell], problems: list[Diagnostic]) -> Map:
    row = Map(cells[0].at)
    for column, cell in zip(columns, cells):  # noqa: B905  a missing `id` has no cell
        if column is not None and cell.text.strip():
            _put(row, column, _value(cell, column.kinds, problems), cell.at, problems)
    if len(columns) > len(cells) and columns[-1] is not None:
        row.put("id", "", columns[-1].at, columns[-1].at)  # a stand-in, so that the rest is checked
    return row


def _put(row: Map, column: _Column, value: Any, at: Spot, problems: list[Diagnostic]) -> None:
    *parents, last = column.name.split(".")
    mapping = row
    for parent in parents:
        below = mapping.get(parent, Map(at))
        if not isinstance(below, Map):
            what = f"the column {readable(column.name)!r} leads into {readable(parent)!r}"
            problems.append(problem_at(at, "csv-row", f"{what}, which is no mapping in this row"))
            return
        if parent not in mapping:
            mapping.put(parent, below, column.at, at)
        mapping = below
    mapping.put(last, value, column.at, at)


def _value(cell: _Cell, kinds: frozenset[str], problems: list[Diagnostic]) -> Any:
    text = cell.text.strip()
    if ("list" in kinds and text.startswith("[")) or ("mapping" in kinds and text.startswith("{")):
        return _json(text, cell.at, problems)
    if "list" in kinds:
        return located([item.strip() for item in text.split(";") if item.strip()], cell.at)
    return cell.text if "text" in kinds and "value" not in kinds else _json_or_text(cell)


def _json(text: str, at: Spot, problems: list[Diagnostic]) -> Any:
    """What the JSON of a cell stands for, all of it standing where the cell stands; its text where it is no JSON."""
    found: list[Diagnostic] = []
    try:
        value = read_json(text, "", found)
    except InputError as error:
        found, value = list(error.diagnostics), text
    problems.extend(problem_at(at, each.rule, f"in this cell, {each.message}", each.hint) for each in found)
    return located(value, at)


def _json_or_text(cell: _Cell) -> Any:
    try:
        return located(read_json(cell.text), cell.at)
    except InputError:
        return cell.text
