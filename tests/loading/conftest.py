"""A project on disk, made of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.cases import LoadedCases, load_cases

DATA = Path(__file__).parents[1] / "data" / "loading"


class Folder:
    """A project folder that tests write into."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: Mapping[str, str | bytes]) -> Folder:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def case(self, text: str) -> Folder:
        return self.write({"cases/smoke/a.yaml": text})

    def load(self, **settings: Any) -> LoadedCases:
        return load_cases(Project(root=str(self.root), **settings))

    def problems(self, **settings: Any) -> tuple[Diagnostic, ...]:
        return problems_of(lambda: self.load(**settings))


def problems_of(load: Callable[[], object]) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        load()
    return caught.value.diagnostics


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path.resolve())


@pytest.fixture
def data() -> Path:
    return DATA


@pytest.fixture
def printed(folder: Folder) -> Folder:
    """The printed case, fixture, permissions and project, with the files that they name."""
    names = {
        "seatrial.yaml": "printed_project.yaml",
        "cases/regression/refund.yaml": "printed_case.yaml",
        "fixtures/refund_order_o100/fixture.yaml": "printed_fixture.yaml",
        "policies/tool_permissions.yaml": "printed_permissions.yaml",
    }
    folder.write({name: (DATA / source).read_bytes() for name, source in names.items()})
    return folder.write(
        {
            "fixtures/refund_order_o100/orders.sql": "CREATE TABLE refunds (user_id TEXT, status TEXT);",
            "fixtures/refund_order_o100/state.json": '{"order": {"id": "O-100"}}',
            "fixtures/refund_order_o100/files/note.txt": "damaged",
            "my_module.py": "def polite(context):\n    return True\n\n\ndef score(context, n):\n    return 1.0\n",
        }
    )
