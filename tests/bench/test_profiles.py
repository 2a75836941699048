"""A profile names the places that cost, in every thread, and leaves waiting out."""

from __future__ import annotations

import cProfile
import pstats
import threading
import tracemalloc
from pathlib import Path

import zstandard
from benchmarks.profiles import held, hot_files, hot_functions, hottest, peak_mb


def busy(times: int) -> int:
    return sum(_square(number) for number in range(times))


def _square(number: int) -> int:
    return number * number


def places(found: list[object]) -> str:
    return " ".join(str(getattr(hot, "place", "")) for hot in found)


def test_work_in_other_threads_is_seen() -> None:
    def run() -> None:
        thread = threading.Thread(target=busy, args=(5_000,))
        thread.start()
        thread.join()

    found = hot_functions(run)
    (square,) = (hot for hot in found if hot.place.endswith(" _square"))
    assert (square.count, square.unit) == (5_000, "s")


def test_a_thread_that_was_there_before_is_left_as_it_is() -> None:
    hot_functions(lambda: busy(10))
    assert threading.getprofile() is None


def test_waiting_is_no_work_and_shares_are_of_the_rest() -> None:
    lock = threading.Lock()
    profile = cProfile.Profile()
    with profile:
        lock.acquire()
        lock.acquire(timeout=0.01)
        busy(1_000)
    found = hottest(pstats.Stats(profile))
    assert "lock" not in places(list(found))
    functions = [hot for hot in found if not hot.place.startswith("all of ")]
    assert 0 < sum(hot.share for hot in functions) <= 1.0001


def test_modules_hold_the_time_of_the_built_in_functions_that_they_call() -> None:
    profile = cProfile.Profile()
    with profile:
        sorted(range(200_000), key=lambda number: -number)
    found = hottest(pstats.Stats(profile))
    (module,) = (hot for hot in found if hot.place.startswith("all of ") and "test_profiles" in hot.place)
    assert module.count >= 200_000


def test_no_more_than_the_top_is_named() -> None:
    profile = cProfile.Profile()
    with profile:
        busy(10)
    assert len([hot for hot in hottest(pstats.Stats(profile), top=1) if not hot.place.startswith("all of")]) == 1


def test_memory_counts_for_the_innermost_frame_of_the_package() -> None:
    def frame(file: str, line: int) -> tracemalloc.Frame:
        return tracemalloc.Frame((file, line))

    ours, theirs = frame("/x/src/seatrial/store/a.py", 3), frame("/x/site-packages/pydantic/main.py", 9)
    found = held([((ours, theirs), 600, 2), ((ours,), 200, 1), ((theirs,), 200, 5)])
    assert [(hot.place, hot.share, hot.count) for hot in found] == [
        ("seatrial/store/a.py:3", 0.8, 3),
        ("pydantic/main.py:9", 0.2, 5),
    ]


def test_the_largest_files_come_first_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"1\n")
    (tmp_path / "large").write_bytes(b"12\n345\n")
    packed = zstandard.ZstdCompressor().compress(b"".join(b"%d\n" % number for number in range(99)))
    (tmp_path / "packed.zst").write_bytes(packed)
    assert [(hot.place, hot.count) for hot in hot_files(tmp_path)] == [("packed.zst", 99), ("large", 2), ("small", 1)]


def test_peak_memory_is_what_this_process_held() -> None:
    before = peak_mb()
    block = bytearray(64 * 1024 * 1024 + int(before) * 1024 * 1024)
    assert peak_mb() >= len(block) / 1024**2
