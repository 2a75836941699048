"""What starting up may load: proxies for start-up time that do not depend on the machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FORBIDDEN = {
    "asyncio",
    "jsonschema",
    "langchain_core",
    "langgraph",
    "numpy",
    "pandas",
    "pydantic",
    "rich",
    "scipy",
    "yaml",
    "zstandard",
}


def loaded_by(code: str) -> set[str]:
    program = f"import sys\nbefore = set(sys.modules)\n{code}\nloaded = sorted(set(sys.modules) - before)\n"
    program += "import json\nprint(json.dumps(loaded))\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.strip().splitlines()[-1]))


HELP = """
import contextlib, io
from seatrial.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(["--help"])
"""


@pytest.mark.slow
def test_import_loads_nothing_but_the_package_itself() -> None:
    loaded = loaded_by("import seatrial")
    assert loaded & FORBIDDEN == set()
    assert {name for name in loaded if name.startswith("seatrial")} == {"seatrial"}
    assert len(loaded) <= 3


@pytest.mark.slow
def test_help_loads_click_and_no_command() -> None:
    loaded = loaded_by(HELP)
    assert loaded & FORBIDDEN == set()
    ours = {name for name in loaded if name.startswith("seatrial")}
    assert ours <= {"seatrial", "seatrial.cli", "seatrial.errors", "seatrial.registry"}


@pytest.mark.slow
def test_check_loads_no_agent_framework_and_no_statistics() -> None:
    loaded = loaded_by("import seatrial.cli.project")
    assert loaded & (FORBIDDEN - {"pydantic", "yaml", "rich", "asyncio", "jsonschema"}) == set()
