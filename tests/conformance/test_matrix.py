"""The table situation by adapter in the documentation is what a run gives."""

from __future__ import annotations

import pytest

from conformance.frameworks import all_frameworks, result_of
from executable_docs import REPOSITORY
from seatrial.testing import conformance


@pytest.mark.slow
def test_the_documented_matrix_is_what_a_run_gives() -> None:
    reports = [
        conformance.Report(
            conformance.name_of(framework), tuple(result_of(framework, name) for name in conformance.SITUATIONS)
        )
        for framework in all_frameworks()
    ]
    written = (REPOSITORY / "docs/adapters/matrix.md").read_text(encoding="utf-8")
    assert written == conformance.matrix(reports), "run `make matrix` and look at what has changed"
