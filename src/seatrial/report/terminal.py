"""Everything that is shown in a terminal, by one door.

Results go to stdout, progress and diagnostics to stderr. Text of agents, judges and cases is shown literally: markup is
not interpreted, and control, bidirectional and invisible characters are escaped, so that no data can steer a terminal.
"""

from __future__ import annotations

from seatrial.report.baseline_view import print_baseline, print_baseline_diff
from seatrial.report.comparison_view import print_comparison
from seatrial.report.decision_view import print_decision
from seatrial.report.diagnostics_view import print_diagnostics
from seatrial.report.isolation_view import print_isolation
from seatrial.report.lists_view import print_cases, print_metrics, print_runs, print_settings
from seatrial.report.progress import Progress
from seatrial.report.regraded_view import print_flips
from seatrial.report.rerun_view import print_rerun
from seatrial.report.screen import console
from seatrial.report.summary_view import print_summary
from seatrial.report.trace_view import print_trace

__all__ = [
    "Progress",
    "console",
    "print_baseline",
    "print_baseline_diff",
    "print_cases",
    "print_comparison",
    "print_decision",
    "print_diagnostics",
    "print_flips",
    "print_isolation",
    "print_metrics",
    "print_rerun",
    "print_runs",
    "print_settings",
    "print_summary",
    "print_trace",
]
