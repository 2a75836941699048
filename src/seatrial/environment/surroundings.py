"""What all trials of one process share, and what trials leave behind in it.

Environment variables, the working folder, threads, the streams that are printed to, and the entries of a few folders: a
look at all of it takes some microseconds, at the beginning and end of every trial. What is otherwise after a trial than
before it is a Leftover. It fails no trial; it says that the trials after this one did not start where this one did.

With several trials at once it cannot be told which of them did it. Then one look a millisecond is enough, and a
leftover waits until every trial has ended that ran since the look before the one that found it: what is gone by then (a
variable set for the time of a trial) was none, and what is still there is reported once, with all of them named.

Not looked at: what lies deeper in those folders or elsewhere, and state inside Python objects (fixtures watch module
globals, `seatrial isolate` looks at all of the project's modules).
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from seatrial.core.trial import Leftover, LeftoverKind

__all__ = ["Surroundings"]

Key = tuple[str, str]
"""Kind, and a name that is the same as long as the difference lasts."""

_TOLD = 5
"""Leftovers of one kind that are told one by one."""
_OWN_THREADS = ("seatrial-", "asyncio_")
"""Names of threads of the harness, and of its event loop's pool that agents borrow."""
_NUMBERED = re.compile(r"^(.*(?:Thread|ThreadPoolExecutor|Dummy|seatrial)-)\d[\d_]*")
"""Names that Python counts up over the whole process."""
_OWN_ENTRIES = frozenset({"runs", ".seatrial", "__pycache__"})
_RACY_NS = 50_000_000
"""A folder that changed so recently may change again without its time moving: file systems count in ticks."""


_NOWHERE: Mapping[str, Path] = {}


@dataclass
class _Seen:
    """A difference that is there and not yet reported."""

    text: str
    during: tuple[str, ...]
    """Trials that were running when it was first seen, or had ended since the look before."""
    waiting: set[str]
    """Those of them that still run."""


class Surroundings:
    """Shared by all trials of a run in this process; safe for any thread. Copied to another process it starts afresh.

    `folders` are those whose entries are looked at, by what they are called in messages. A beginning trial looks only
    where the last look is `pause_s` old: who begins so soon after another one has ended, or while others run, may be
    named for what was done in between. `expected` is how many trials are certain to begin where several run at once;
    until the last of them has begun, an ending trial looks no more often than that either. `clock` gives the seconds.
    """

    def __init__(
        self,
        folders: Mapping[str, Path] = _NOWHERE,
        *,
        expected: int = 0,
        pause_s: float = 0.001,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause_s, self._clock = pause_s, clock
        self._to_begin = expected
        self._looked = 0.0
        self._folders = {name: path.resolve() for name, path in folders.items()}
        named = {path: name for name, path in reversed(self._folders.items())}
        entries = (_Entries(path, name) for path, name in named.items())
        self._parts: tuple[_Part, ...] = (_Variables(), _Cwd(), _Threads(), _Streams(), *entries)
        self._lock = threading.Lock()
        self._running: dict[str, None] = {}
        self._ended: dict[str, None] = {}
        """Trials that ended since the last look."""
        self._told: set[Key] = set()
        """Files of fixtures that were reported: unlike all else they stay different from what they were."""
        self._seen: dict[Key, _Seen] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Surroundings, (self._folders,)

    def begin(self, trial: str) -> None:
        """A trial starts. What changed while none was running is nobody's."""
        with self._lock:
            if self._clock() - self._looked > self._pause_s:
                self._look_afresh()
            self._running[trial] = None
            self._to_begin -= 1

    def _look_afresh(self) -> None:
        if self._running or self._ended:
            self._look({})
            return
        for part in self._parts:
            part.settle()

    def end(self, trial: str, more: Iterable[tuple[str, str]] = ()) -> tuple[Leftover, ...]:
        """A trial has cleaned up; gives what is now certain to be left.

        `more` are (kind, text) of shared things that its own reset came from.
        """
        with self._lock:
            if not more and self._can_wait():
                self._running.pop(trial, None)
                self._ended[trial] = None
                return ()
            self._look({pair: pair[1] for pair in more if pair not in self._told} if more else _NONE)
            self._running.pop(trial, None)
            found = self._settled(trial) if self._seen else ()
        return _leftovers(found, trial) if found else ()

    def _can_wait(self) -> bool:
        """Whether another trial will look for this one, too."""
        return self._to_begin > 0 and not self._seen and self._clock() - self._looked < self._pause_s

    def _settled(self, ended: str) -> list[tuple[Key, _Seen]]:
        """What waits for no trial any more; from now on it is how things are."""
        for seen in self._seen.values():
            seen.waiting.discard(ended)
        found = [(key, seen) for key, seen in self._seen.items() if not seen.waiting]
        for key, _ in found:
            del self._seen[key]
            if key[0] == "fixture":
                self._told.add(key)
            for part in self._parts:
                part.accept(key)
        return found

    def _look(self, more: Mapping[Key, str]) -> None:
        """Take note of what is otherwise now, and forget what is no longer so."""
        self._looked = self._clock()
        if not more and not self._seen and self._all_same():
            self._ended.clear()
            return
        now: dict[Key, str] = dict(more)
        for part in self._parts:
            now.update({} if part.same() else part.differences())
        for key in [key for key in self._seen if key not in now and key[0] not in ("fixture", "database")]:
            del self._seen[key]
        during = (*self._ended, *self._running)
        self._ended.clear()
        for key, text in now.items():
            self._seen.setdefault(key, _Seen(text, during, set(self._running))).text = text

    def _all_same(self) -> bool:
        for part in self._parts:  # noqa: SIM110  a generator would cost as much as a look
            if not part.same():
                return False
        return True


def _leftovers(found: Iterable[tuple[Key, _Seen]], told_with: str) -> tuple[Leftover, ...]:
    """Equal ones together, and of very many of a kind only the first few; those of the trial alone name nobody."""
    grouped: dict[tuple[str, tuple[str, ...]], dict[str, int]] = {}
    for (kind, _), seen in found:
        texts = grouped.setdefault((kind, seen.during), {})
        texts[seen.text] = texts.get(seen.text, 0) + 1
    return tuple(
        Leftover(kind=LeftoverKind(kind), what=what, during=() if during == (told_with,) else tuple(sorted(during)))
        for (kind, during), texts in grouped.items()
        for what in _told(texts)
    )


def _told(texts: Mapping[str, int]) -> list[str]:
    told = [f"{count} times: {text}" if count > 1 else text for text, count in sorted(texts.items())]
    rest = len(told) - _TOLD
    return told if rest <= 0 else [*told[:_TOLD], f"and {rest} more"]


# --- what is looked at -----------------------------------------------------------------------------------------------


class _Part(Protocol):
    """One kind of shared thing, compared with how it was settled last."""

    def same(self) -> bool:
        """Whether nothing is otherwise now."""

    def differences(self) -> Mapping[Key, str]:
        """What is otherwise now, in words."""

    def settle(self) -> None:
        """Take everything as it is now."""

    def accept(self, key: Key) -> None:
        """Take one difference as given from now on."""


_NONE: Mapping[Key, str] = {}


class _Variables:
    """Environment variables; their values are never told."""

    def __init__(self) -> None:
        self._settled = dict(_environment())

    def same(self) -> bool:
        return bool(getattr(os.environ, "_data", os.environ) == self._settled)

    def differences(self) -> Mapping[Key, str]:
        now = _environment()
        names = {name for name in now.keys() | self._settled.keys() if now.get(name) != self._settled.get(name)}
        return {("environment", _text(name)): self._told(name, now) for name in names}

    def _told(self, name: Any, now: Mapping[Any, Any]) -> str:
        happened = "removed" if name not in now else ("changed" if name in self._settled else "set")
        return f"the environment variable {_text(name)} was {happened}"

    def settle(self) -> None:
        self._settled = dict(_environment())

    def accept(self, key: Key) -> None:
        if key[0] == "environment":
            now = dict(_environment())
            self._settled = {name: value for name, value in self._settled.items() if _text(name) != key[1]}
            self._settled |= {name: value for name, value in now.items() if _text(name) == key[1]}


def _environment() -> Mapping[Any, Any]:
    """`os.environ` without decoding each of its names and values, which costs more than all the rest."""
    return getattr(os.environ, "_data", os.environ)


def _text(name: Any) -> str:
    return os.fsdecode(name) if isinstance(name, bytes) else str(name)


class _Cwd:
    """The process's working folder."""

    def __init__(self) -> None:
        self._settled = _cwd()

    def same(self) -> bool:
        return _cwd() == self._settled

    def differences(self) -> Mapping[Key, str]:
        return {("cwd", ""): "the working folder was changed" + ("" if _cwd() else " to one that is gone")}

    def settle(self) -> None:
        self._settled = _cwd()

    def accept(self, key: Key) -> None:
        if key[0] == "cwd":
            self.settle()


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  a text, in a microsecond
    except FileNotFoundError:
        return ""


class _Threads:
    """Threads beside the harness's own."""

    def __init__(self) -> None:
        self._settled = set(threading.enumerate())

    def same(self) -> bool:
        if self._settled.issuperset(now := threading.enumerate()):
            return True
        self._settled.update(filter(_is_own, now))
        return self._settled.issuperset(now)

    def differences(self) -> Mapping[Key, str]:
        new = [thread for thread in threading.enumerate() if thread not in self._settled and not _is_own(thread)]
        return {("thread", str(id(thread))): _thread(thread) for thread in new}

    def settle(self) -> None:
        self._settled = set(threading.enumerate())

    def accept(self, key: Key) -> None:
        if key[0] == "thread":
            self._settled = {thread for thread in threading.enumerate() if self._known(thread, key[1])}

    def _known(self, thread: threading.Thread, name: str) -> bool:
        return thread in self._settled or str(id(thread)) == name


def _is_own(thread: threading.Thread) -> bool:
    return thread.name.startswith(_OWN_THREADS)


def _thread(thread: threading.Thread) -> str:
    name = _NUMBERED.sub(r"\1N", thread.name)
    return f"a {'daemon ' if thread.daemon else ''}thread still runs: {name}"


class _Streams:
    """What is printed to: `sys.stdout` and `sys.stderr`."""

    def __init__(self) -> None:
        self.settle()

    def same(self) -> bool:
        return sys.stdout is self._stdout and sys.stderr is self._stderr

    def differences(self) -> Mapping[Key, str]:
        changed = {"stdout": sys.stdout is not self._stdout, "stderr": sys.stderr is not self._stderr}
        return {("stream", name): f"sys.{name} was replaced" for name, is_new in changed.items() if is_new}

    def settle(self) -> None:
        self._stdout, self._stderr = sys.stdout, sys.stderr

    def accept(self, key: Key) -> None:
        if key == ("stream", "stdout"):
            self._stdout = sys.stdout
        elif key == ("stream", "stderr"):
            self._stderr = sys.stderr


class _Entries:
    """Names in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = str(folder)
        self._name = name
        self._changed = 0
        self._listed = False
        """Whether it stands as it was listed last, as long as its time is the same."""
        self._settled = self._now = frozenset[str]()
        self.settle()

    def same(self) -> bool:
        """The folder is listed only if it changed since it was listed last."""
        try:
            changed = os.stat(self._folder).st_mtime_ns  # noqa: PTH116  as a method it costs twice as much
            if changed != self._changed or not self._listed:
                self._listed = time.time_ns() - changed >= _RACY_NS
                self._now = frozenset(os.listdir(self._folder)) - _OWN_ENTRIES  # noqa: PTH208  names only
                self._changed = changed
        except OSError:
            self._now, self._listed = frozenset(), False
        return self._now == self._settled

    def differences(self) -> Mapping[Key, str]:
        made = self._told("+", "was made in", self._now - self._settled)
        return made | self._told("-", "is gone from", self._settled - self._now)

    def _told(self, sign: str, happened: str, names: Iterable[str]) -> dict[Key, str]:
        return {("file", f"{sign}{self._folder}{os.sep}{name}"): f"{name} {happened} {self._name}" for name in names}

    def settle(self) -> None:
        self.same()
        self._settled = self._now

    def accept(self, key: Key) -> None:
        folder, name = os.path.split(key[1][1:])
        if key[0] == "file" and folder == self._folder:
            self._settled = self._settled | {name} if key[1][0] == "+" else self._settled - {name}
