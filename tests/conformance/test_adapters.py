"""The kit, run with every framework's real agents."""

from __future__ import annotations

import pytest

from conformance.frameworks import frameworks_in, modules, result_of
from seatrial.core.trace import Observable
from seatrial.testing import conformance
from seatrial.testing.conformance import Outcome

SHOWN = frozenset(Observable) - {Observable.RETRIEVAL, Observable.OUTCOME, Observable.SAFETY}
"""What the kit's situations give rise to."""


@pytest.mark.parametrize("situation", conformance.SITUATIONS)
@pytest.mark.parametrize("module", modules())
def test_the_trace_says_what_happened(module: str, situation: str) -> None:
    problems = [problem for framework in frameworks_in(module) for problem in result_of(framework, situation).problems]
    assert not problems, "\n".join(map(str, problems))


@pytest.mark.parametrize("module", modules())
def test_what_is_declared_is_delivered_somewhere(module: str) -> None:
    for kind in {framework.kind for framework in frameworks_in(module)}:
        frameworks = [framework for framework in frameworks_in(module) if framework.kind == kind]
        declared = frozenset().union(*(conformance.declared_by(framework) for framework in frameworks)) & SHOWN
        delivered = {seen for framework in frameworks for seen in delivered_by(framework)}
        assert declared <= delivered, f"{kind} declares {sorted(declared - delivered)}, but no situation shows it"


def delivered_by(framework: conformance.Framework) -> frozenset[Observable]:
    """What situations that this framework has give rise to."""
    results = [result_of(framework, name) for name in conformance.SITUATIONS]
    passed = [result for result in results if result.outcome is Outcome.PASSED]
    return frozenset().union(*(result.observed for result in passed))
