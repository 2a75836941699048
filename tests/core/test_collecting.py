from __future__ import annotations

import gc

import pytest

from seatrial.core.collecting import collector_paused


def test_the_collector_rests_meanwhile_and_is_as_it_was_afterwards() -> None:
    with pytest.raises(KeyError), collector_paused():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
