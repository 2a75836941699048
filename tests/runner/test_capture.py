"""What is printed while a run lasts goes to its trials, and harms nobody who prints longer."""

from __future__ import annotations

import gc
import sys
import weakref

from seatrial.core.case import Case
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import captured_output


def test_text_goes_to_the_log_of_the_trial_in_whose_context_it_is_printed() -> None:
    trial, other = TrialEnvironment(Case(id="c")), TrialEnvironment(Case(id="d"))
    with captured_output():
        with trial.activate():
            print("inside")
            with other.activate():
                print("deeper")
        outside = sys.stdout
    assert (trial.log.text, other.log.text) == ("inside\n", "deeper\n")
    assert sys.stdout is not outside


def test_a_stream_outlives_the_run_for_threads_that_still_print_to_it() -> None:
    with captured_output():
        stream = weakref.ref(sys.stdout)
    gc.collect()
    assert stream() is not None
