from __future__ import annotations

import gc

from seatrial.core.collecting import collector_paused


def test_the_collector_rests_meanwhile_and_is_as_it_was_afterwards() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
