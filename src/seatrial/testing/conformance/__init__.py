"""The kit that proves an adapter: scripted situations, driven through it, and a trace that must say what happened.

    from seatrial.testing import conformance

    @pytest.mark.parametrize("situation", conformance.SITUATIONS)
    def test_the_adapter_says_what_happened(situation):
        conformance.prove(MyFramework(), situation)

`check(framework)` gives a Report of all situations. A `Framework` builds its agents from a `Script`; see `script`.
"""

from __future__ import annotations

from seatrial.testing.conformance.matrix import matrix
from seatrial.testing.conformance.names import SITUATIONS
from seatrial.testing.conformance.offered import frameworks_at
from seatrial.testing.conformance.proving import check, check_situation, declared_by, name_of, prove
from seatrial.testing.conformance.report import Outcome, Problem, Report, Result
from seatrial.testing.conformance.script import (
    AgentScript,
    Ask,
    Framework,
    Line,
    Player,
    Script,
    ScriptOver,
    Tool,
    Ways,
    player_of,
    ways_of,
)

__all__ = [
    "SITUATIONS",
    "AgentScript",
    "Ask",
    "Framework",
    "Line",
    "Outcome",
    "Player",
    "Problem",
    "Report",
    "Result",
    "Script",
    "ScriptOver",
    "Tool",
    "Ways",
    "check",
    "check_situation",
    "declared_by",
    "frameworks_at",
    "matrix",
    "name_of",
    "player_of",
    "prove",
    "ways_of",
]
