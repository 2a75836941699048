"""Whatever is written, loading gives cases or one InputError, with every place inside the file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.core.case import Case, Expected
from seatrial.core.project import Project
from seatrial.errors import InputError
from seatrial.loading.cases import load_cases
from seatrial.loading.config import load_project
from seatrial.loading.fixtures import load_fixture
from seatrial.loading.short_form import SHORT_KEYS

KEYS = sorted({*Case.model_fields, *Expected.model_fields, *SHORT_KEYS, "matrix", "any_of", "name", "$regex", "with"})
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["${a}", "a", "80%", "("])
WRITTEN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
CASES = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b"]) | SCALARS}, optional={key: WRITTEN for key in KEYS if key != "id"}
)


def loads(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        project = Project(root=folder)
        try:
            load_cases(project)
            if name.startswith("fixtures"):
                load_fixture(project, "f")
        except InputError as error:
            found = error.diagnostics
        else:
            return
        assert all(str(problem).isprintable() for problem in found)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(CASES, max_size=3) | CASES | WRITTEN)
def test_any_cases_load_or_are_an_input_error(written: Any) -> None:
    loads("cases/x/a.json", json.dumps(written))


@settings(max_examples=50, deadline=None)
@given(st.text("id,query;\"\n\r\t{}[]:1.'a", max_size=60))
def test_any_table_loads_or_is_an_input_error(text: str) -> None:
    loads("cases/x/a.csv", "id,query,tags,input.x\n" + text)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(["state", "tools", "faults", "database", "files", "outcome", "x"]), WRITTEN))
def test_any_fixture_loads_or_is_an_input_error(written: Any) -> None:
    loads("fixtures/f/fixture.yaml", json.dumps(written))


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(Project.model_fields)) | st.text(max_size=3), WRITTEN))
def test_any_project_loads_or_is_an_input_error(written: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "seatrial.yaml").write_text(json.dumps(written), encoding="utf-8")
        try:
            load_project(folder=Path(folder), environ={"A": "b"})
        except InputError as error:
            found = error.diagnostics
        else:
            return
        assert all(problem.rule and problem.message for problem in found)
