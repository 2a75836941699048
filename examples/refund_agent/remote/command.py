"""The refund desk as a program: `agent: {command: [python, remote/command.py, BUILD]}`."""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from queue import SimpleQueue
from typing import Any

from desk import BUILDS, RemoteDesk

__all__ = ["main"]

_ASKS = ("approval", "tool_result")


class Lines:
    """Standard input and output; replies go to whoever asked, by their id, for tools run in threads."""

    def __init__(self) -> None:
        self.heard: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._replies: defaultdict[str, SimpleQueue[dict[str, Any]]] = defaultdict(SimpleQueue)
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            (self._replies[message["id"]] if "id" in message else self.heard).put(message)
        self.heard.put(None)

    def say(self, **message: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def exchange(self, **message: Any) -> dict[str, Any]:
        """Say a message; its reply where one comes."""
        self.say(**message)
        asks = message.get("ask") or message["type"] in _ASKS
        return self._replies[message["id"]].get() if asks else {}


def main(build: str = "good") -> None:
    if build not in BUILDS:
        sys.exit(f"there is no build {build!r}; builds: {', '.join(BUILDS)}")
    lines = Lines()
    hello = lines.heard.get()
    if hello is None:
        return
    lines.say(type="hello", observes=["tool_calls", "handoffs", "approvals", "model_calls", "usage"])
    desk = RemoteDesk(build, hello, lines.exchange)
    while (turn := lines.heard.get()) is not None:
        lines.say(type="answer", **desk.answer(turn["message"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
