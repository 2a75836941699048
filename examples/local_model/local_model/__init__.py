"""A tool-using agent on a real, very small language model on this machine, so that repeated trials truly vary."""

from __future__ import annotations

from local_model.server import INSTALL, missing

if missing():
    raise ImportError(f"the local model needs {missing()}, which is not installed: {INSTALL}")

from local_model.agent import build

__all__ = ["build"]
