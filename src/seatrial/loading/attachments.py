"""Files that go with a case's input: found beside the case, digested, and kept inside the project.

`input.attachments` lists paths relative to the file that names them, or mappings `{path, sha256}` whose digest is
checked. The input keeps them as written; the case's `attachments` hold where they are and what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, nearest
from seatrial.loading.files import check_inside, file_digest
from seatrial.loading.located import Map, Seq, Spot, problem_at, shown

__all__ = ["attached_paths", "attachments_of"]


def attached_paths(case: Map, folder: Path) -> Iterator[Path]:
    """Where the files are that a case names, whether they exist or not."""
    source = case.get("input")
    listed = source.get("attachments") if isinstance(source, Map) else None
    for item in listed if isinstance(listed, Seq) else ():
        name = item.get("path") if isinstance(item, Map) else item
        if isinstance(name, str) and "\0" not in name:
            yield (folder / name).resolve()


def attachments_of(source: Any, folder: Path, root: Path, problems: list[Diagnostic]) -> list[dict[str, Any]]:
    """The attachments of an input as data of `Attachment`. What is wrong is added to `problems`."""
    if not isinstance(source, Map) or "attachments" not in source:
        return []
    listed, at = source["attachments"], source.values_at["attachments"]
    if not isinstance(listed, Seq):
        problems.append(problem_at(at, "wrong-value", f"`input.attachments` should be a list, not {shown(listed, at)}"))
        return []
    found = (_attachment(item, spot, folder, root, problems) for item, spot in zip(listed, listed.values_at))  # noqa: B905
    return [item for item in found if item is not None]


def _attachment(item: Any, spot: Spot, folder: Path, root: Path, problems: list[Diagnostic]) -> dict[str, Any] | None:
    name, wanted = (item.get("path"), item.get("sha256")) if isinstance(item, Map) else (item, None)
    if not isinstance(name, str) or (isinstance(item, Map) and not set(item) <= {"path", "sha256"}):
        message = f"an attachment is a path or {{path, sha256}}, not {shown(item, spot)}"
        problems.append(problem_at(spot, "wrong-value", message))
        return None
    try:
        path = check_inside(folder, name, root, folder)
        digest, size = file_digest(path)
    except ValueError as error:
        problems.append(problem_at(spot, "attachment", f"the attachment {readable(name)!r}: {error}"))
        return None
    except OSError as error:
        problems.append(_missing(name, path, spot, error))
        return None
    if wanted is not None and str(wanted).removeprefix("sha256:").lower() != digest:
        message = f"the attachment {readable(name)!r} is not the file its digest says: its sha256 is {digest}"
        problems.append(problem_at(spot, "attachment", message))
    return {"path": name, "sha256": digest, "size": size, "absolute": str(path)}


def _missing(name: str, path: Path, spot: Spot, error: OSError) -> Diagnostic:
    siblings = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = nearest(path.name, siblings)
    why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
    hint = f"did you mean {close!r}?" if close else ""
    return problem_at(spot, "attachment", f"the attachment {readable(name)!r} {why}", hint)
