"""What environment variables give; an empty one counts as not set.

| variable | sets |
| --- | --- |
| `SEATRIAL_AGENT`, `SEATRIAL_BUILD_ID`, `SEATRIAL_CONCURRENCY`, `SEATRIAL_ISOLATION`, `SEATRIAL_HIDDEN_CASES` | `agent`, `build_id`, `concurrency`, `isolation`, `hidden_cases` |
| `SEATRIAL_HISTORY_URL`, `SEATRIAL_JUDGE_MODEL`, `SEATRIAL_JUDGE_BASE_URL` | `history.url`, `judge.model`, `judge.base_url` |
| `SEATRIAL_TRIALS`, `SEATRIAL_TIMEOUT_S`, `SEATRIAL_SEED`, `SEATRIAL_TOOLS` | the options of a run (`options_from_environment`), over every case |
"""  # noqa: E501  a table row is one line

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from seatrial.core import run_options
from seatrial.errors import UsageError
from seatrial.loading.located import shown
from seatrial.loading.variables import typed

__all__ = ["OPTIONS", "PREFIX", "SETTINGS", "options_from_environment"]

SETTINGS = {
    "SEATRIAL_AGENT": "agent",
    "SEATRIAL_BUILD_ID": "build_id",
    "SEATRIAL_CONCURRENCY": "concurrency",
    "SEATRIAL_HIDDEN_CASES": "hidden_cases",
    "SEATRIAL_HISTORY_URL": "history.url",
    "SEATRIAL_ISOLATION": "isolation",
    "SEATRIAL_JUDGE_BASE_URL": "judge.base_url",
    "SEATRIAL_JUDGE_MODEL": "judge.model",
}
"""Settings of a project, by the variable that goes over them."""
OPTIONS = {
    "SEATRIAL_SEED": "seed",
    "SEATRIAL_TIMEOUT_S": "timeout_s",
    "SEATRIAL_TOOLS": "tools",
    "SEATRIAL_TRIALS": "trials",
}
"""Options of a run, by the variable that gives them."""
PREFIX = "SEATRIAL_"


def options_from_environment(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Options of a run that environment variables give; options on the command line go over them.

    Raises UsageError for a value that an option does not take.
    """
    environ = os.environ if environ is None else environ
    given = {key: typed(environ[name]) for name, key in OPTIONS.items() if environ.get(name)}
    for name, key in OPTIONS.items():
        rule = run_options.OPTIONS[key]
        if given.get(key) is not None and not rule.holds(given[key]):
            raise UsageError(f"the environment variable {name} is {shown(given[key])}; it should be {rule.what}")
    return given
