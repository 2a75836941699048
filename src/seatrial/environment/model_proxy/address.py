"""Where a trial's client finds the proxy, in this process or another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from seatrial.core.cassette import Part
from seatrial.core.encoding import dumps

__all__ = ["DEFAULT_UPSTREAM", "OPENAI", "Mode", "ProxyAddress", "TrialCalls"]

Mode = Literal["record", "replay"]

OPENAI = "OPENAI_BASE_URL"
"""The variable that OpenAI's clients, and many others, read."""
DEFAULT_UPSTREAM = "https://api.openai.com/v1"
"""Where they go without it."""


@dataclass(frozen=True)
class TrialCalls:
    """What came through the proxy in one attempt at a trial."""

    replayed: int = 0
    """Answers that came from the cassette."""
    recorded: int = 0
    """Exchanges that were recorded."""
    problem: str = ""
    """Why the trial says nothing: no recording of a request, a request of nobody's. Empty: all is well."""

    def and_those(self, more: TrialCalls) -> TrialCalls:
        """Both together."""
        both = (self.replayed + more.replayed, self.recorded + more.recorded)
        return TrialCalls(*both, self.problem or more.problem)


@dataclass(frozen=True)
class ProxyAddress:
    """The proxy of a run, as data that can travel."""

    url: str
    """With the run's own secret part, without a slash at its end."""
    upstreams: Mapping[str, str]
    """Base URLs of the models by name; a variable's name is that of what it points to."""
    variables: tuple[str, ...] = (OPENAI,)
    """Environment variables that hold an address while the run lasts."""

    def of_trial(self, case_id: str, trial: int, attempt: int, part: Part = "agent") -> dict[str, str]:
        """This attempt's own base URL for each upstream."""
        return self._urls(f"trial/{quote(case_id, safe='')}/{trial}/{attempt}/{part}")

    @property
    def shared(self) -> dict[str, str]:
        """Base URLs for clients that belong to no trial: their requests are the one running trial's."""
        return self._urls("any")

    def _urls(self, whose: str) -> dict[str, str]:
        """With the path of the upstream at the end, which some clients look at."""
        return {
            name: f"{self.url}/{whose}/{quote(name, safe='')}{urlsplit(upstream).path.rstrip('/')}"
            for name, upstream in self.upstreams.items()
        }

    def begin(self, case_id: str, trial: int, attempt: int, part: Part = "agent") -> None:
        """Say that a part of an attempt begins."""
        self._say("begin", case_id=case_id, trial=trial, attempt=attempt, part=part)

    def finish(self, case_id: str, trial: int, attempt: int, part: Part = "agent", *, keep: bool = True) -> TrialCalls:
        """Say that it has ended; what it recorded is kept, unless it is to be made again. Once more changes nothing."""
        given = {"case_id": case_id, "trial": trial, "attempt": attempt, "part": part, "keep": keep}
        return TrialCalls(**self._say("finish", **given))

    def _say(self, what: str, **given: Any) -> dict[str, Any]:
        import http.client  # with all that it brings, for those who record alone

        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        try:
            connection.request("POST", f"{parts.path}/{what}", dumps(given).encode("utf-8"))
            said: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return said

    def as_data(self) -> dict[str, Any]:
        """JSON data for another process; `from_data` reads it."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ProxyAddress:
        """What `as_data` gave."""
        return cls(data["url"], dict(data["upstreams"]), tuple(data["variables"]))
