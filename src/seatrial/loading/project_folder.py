"""Where a project is: in the nearest folder, going up from the working folder, that holds `seatrial.yaml`; without
one, in the working folder itself when it holds `cases/`.
"""

from __future__ import annotations

from pathlib import Path

from seatrial.errors import UsageError
from seatrial.loading.files import is_there

__all__ = ["PROJECT_FILE", "find_root"]

PROJECT_FILE = "seatrial.yaml"
_BEGIN = (
    f"go to the project's folder or name it with --project; a new project is {PROJECT_FILE} with a line "
    "`agent: module:function`, and a case in cases/ (docs/tutorial.md)"
)


def find_root(folder: Path | None = None, *, start: Path | None = None) -> Path:
    """The project folder: `folder` itself when given, else found upward from `start` (the working folder).

    Raises UsageError when there is none, or a folder cannot be looked into.
    """
    if folder is not None:
        return _given(folder)
    begin = (start or Path.cwd()).resolve()
    for candidate in (begin, *begin.parents):
        if is_there(candidate / PROJECT_FILE):
            return candidate
    if (begin / "cases").is_dir():
        return begin
    misnamed = [path / "seatrial.yml" for path in (begin, *begin.parents) if (path / "seatrial.yml").is_file()]
    hint = f"{misnamed[0]} has to be named {PROJECT_FILE}" if misnamed else _BEGIN
    raise UsageError(f"there is no {PROJECT_FILE} in {begin} or above it, and no cases/ in it; {hint}")


def _given(folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageError(f"the project folder {folder} does not exist")
    if not (is_there(folder / PROJECT_FILE) or is_there(folder / "cases")):
        raise UsageError(f"{folder} is no project: it holds neither {PROJECT_FILE} nor cases/")
    return folder.resolve()
