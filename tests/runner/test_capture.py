"""What is printed while a run lasts goes to its trials, and harms nobody who prints longer."""

from __future__ import annotations

import gc
import sys
import weakref

from seatrial.runner.capture import Log, captured_output


def test_text_goes_to_the_log_in_whose_context_it_is_printed() -> None:
    log = Log()
    with captured_output():
        with log.active():
            print("inside")
        outside = sys.stdout
    assert log.text == "inside\n"
    assert sys.stdout is not outside


def test_a_stream_outlives_the_run_for_threads_that_still_print_to_it() -> None:
    with captured_output():
        stream = weakref.ref(sys.stdout)
    gc.collect()
    assert stream() is not None
