"""Environment variables that tell each trial its own address."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from seatrial.environment.model_proxy.address import OPENAI, ProxyAddress
from seatrial.environment.model_proxy.variables import in_force, own_addresses
from seatrial.errors import UsageError

UPSTREAMS = {OPENAI: "https://api.openai.com/v1", "OTHER_URL": ""}
ADDRESS = ProxyAddress("http://127.0.0.1:1/s", UPSTREAMS, (OPENAI, "OTHER_URL"))
SHARED = "http://127.0.0.1:1/s/any/OPENAI_BASE_URL/v1"


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(OPENAI, "http://before/v1")
    monkeypatch.delenv("OTHER_URL", raising=False)
    before = _others()
    yield
    assert _others() == before


def _others() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def test_a_trials_context_reads_its_own_address_and_all_else_the_shared_one() -> None:
    with in_force(ADDRESS):
        assert os.environ[OPENAI] == os.getenv(OPENAI) == SHARED
        assert os.environb[OPENAI.encode()] == SHARED.encode()
        with own_addresses({OPENAI: "http://mine/v1"}):
            assert os.environ[OPENAI] == os.environ.get(OPENAI) == "http://mine/v1"
            assert os.environ.copy()[OPENAI] == "http://mine/v1"
            assert os.environb[OPENAI.encode()] == b"http://mine/v1"
            assert os.environ["OTHER_URL"] == "http://127.0.0.1:1/s/any/OTHER_URL"
            assert _in_thread(contextvars.copy_context()) == "http://mine/v1"
            assert _in_thread(contextvars.Context()) == SHARED
        assert os.environ[OPENAI] == SHARED
    assert os.environ[OPENAI] == "http://before/v1"
    assert "OTHER_URL" not in os.environ


def _in_thread(context: contextvars.Context) -> str:
    read: list[str] = []
    thread = threading.Thread(target=context.run, args=(lambda: read.append(os.environ[OPENAI]),))
    thread.start()
    thread.join()
    return read[0]


@pytest.mark.slow
def test_processes_inherit_the_shared_address_and_with_a_copy_the_trials_own() -> None:
    show = [sys.executable, "-c", f"import os; print(os.environ['{OPENAI}'])"]
    with in_force(ADDRESS), own_addresses({OPENAI: "http://mine/v1"}):
        plain = subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
        copied = subprocess.run(show, capture_output=True, text=True, check=True, env={**os.environ}).stdout.strip()
    assert (plain, copied) == (SHARED, "http://mine/v1")


def test_what_is_set_meanwhile_stays_and_what_raises_restores_all_the_same() -> None:
    def fails() -> None:
        with in_force(ADDRESS):
            os.environ["SEATRIAL_TEST_X"] = "1"
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert os.environ[OPENAI] == "http://before/v1"
    assert os.environ.pop("SEATRIAL_TEST_X") == "1"


def test_two_runs_at_once_in_one_process_are_refused() -> None:
    with in_force(ADDRESS):
        with pytest.raises(UsageError, match="another run with cassettes is under way"), in_force(ADDRESS):
            raise AssertionError
        assert os.environ[OPENAI] == SHARED
    with in_force(None):
        assert os.environ[OPENAI] == "http://before/v1"
