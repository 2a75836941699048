"""What is printed while a run lasts goes to its trials, and harms nobody who prints longer."""

from __future__ import annotations

import gc
import io
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from projects import case, seatrial, write_project
from seatrial.core.case import Case
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import captured_output, printing_to_stderr


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


@contextmanager
def console() -> Iterator[io.TextIOWrapper]:
    """Standard output, and what is behind it in `.buffer`; within a test, since pytest has streams of its own."""
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with redirect_stdout(stream), redirect_stderr(io.StringIO()):
        yield stream


def printed(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def test_closing_a_stream_in_a_trial_closes_it_for_nobody() -> None:
    trial = TrialEnvironment(Case(id="c"))
    with console() as stream, captured_output():
        with trial.activate():
            sys.stdout.close()
            sys.stdout.buffer.close()
            sys.stderr.close()
            with pytest.raises(io.UnsupportedOperation):
                sys.stdout.detach()
            print("still here")
        print("report")
    assert not stream.closed
    assert (trial.log.text, printed(stream)) == ("still here\n", "report\n")


def test_a_stream_wrapped_for_another_encoding_still_prints_to_the_trial_and_closes_nothing() -> None:
    trial = TrialEnvironment(Case(id="c"))
    with console() as stream:
        with captured_output(), trial.activate():
            sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8")
            print("ähem")
            sys.stdout.flush()
        gc.collect()
        assert sys.stdout is stream
    assert (stream.closed, trial.log.text, printed(stream)) == (False, "ähem\n", "")


def test_a_stream_that_was_replaced_is_put_back_when_the_run_is_over() -> None:
    with console() as stream:
        with captured_output():
            sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        assert sys.stdout is stream


def test_runs_that_overlap_put_back_what_was_there_before_the_first() -> None:
    with console() as stream:
        first, second = captured_output(), captured_output()
        first.__enter__()
        second.__enter__()
        within = sys.stdout
        first.__exit__(None, None, None)
        still = sys.stdout
        second.__exit__(None, None, None)
        assert (still, sys.stdout) == (within, stream)


def test_code_that_is_only_loaded_prints_to_standard_error_and_closes_nothing() -> None:
    with console() as stream:
        stderr = sys.stderr
        with printing_to_stderr():
            print("loading")
            sys.stdout.close()
            sys.stderr.close()
            sys.stdout = io.StringIO()
        assert (sys.stdout, sys.stderr) == (stream, stderr)
    assert isinstance(stderr, io.StringIO)
    assert (stderr.getvalue(), printed(stream)) == ("loading\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "left"),
    [
        ("sys.stdout.close()", []),
        ("sys.stdout.buffer.close(), sys.stderr.close()", []),
        ("setattr(sys, 'stdout', io.StringIO())", ["sys.stdout was replaced"]),
        ("setattr(sys, 'stderr', None)", ["sys.stderr was replaced"]),
    ],
)
def test_the_report_is_printed_whatever_an_agent_does_to_the_streams(act: str, left: list[str], tmp_path: Path) -> None:
    agent = f"import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\ndef answer(task):\n    {act}\n"
    files = {"my_agent.py": f"{agent}    return task\n", "cases/smoke/one.yaml": case("one")}
    done = seatrial("run", cwd=write_project(tmp_path, files))
    assert (done.returncode, "PASS  1 of 1 case passed" in done.stdout) == (0, True), done.stderr
    assert [line.split("left behind  ")[1] for line in done.stdout.splitlines() if "left behind" in line] == [
        f"{what}  one#1" for what in left
    ]
