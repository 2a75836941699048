"""Every module imports alone, and exports what it says."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import seatrial

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(seatrial.__path__, "seatrial.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_every_exported_name_exists_and_is_sorted(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert [item for item in exported if not hasattr(module, item)] == []
    assert len(set(exported)) == len(exported)


def test_public_names_of_the_package_load() -> None:
    assert [name for name in seatrial.__all__ if getattr(seatrial, name, None) is None] == []
    assert set(seatrial._HOMES) == set(seatrial.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = seatrial.nothing


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_each_module_imports_alone_in_a_fresh_interpreter(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import {name}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
