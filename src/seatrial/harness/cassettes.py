"""Recording and replaying a run's model calls: from what is asked for to a proxy that answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path

from seatrial.core.encoding import digest
from seatrial.core.project import Project
from seatrial.core.run import RunInfo
from seatrial.environment.model_proxy.address import DEFAULT_UPSTREAM, OPENAI, Mode, ProxyAddress
from seatrial.environment.model_proxy.content import Masks
from seatrial.environment.model_proxy.variables import in_force
from seatrial.environment.secrets import Redactor
from seatrial.errors import StorageError, UsageError
from seatrial.store.cassettes import CassetteFolder, read_seed, write_seed

__all__ = ["Cassettes", "cassettes_for", "loading", "model_urls", "running"]


class Cassettes:
    """The cassettes of one run. While it lasts, `in_force` has the project's variables point to the proxy."""

    def __init__(self, folder: Path, mode: Mode, upstreams: Mapping[str, str], variables: tuple[str, ...]) -> None:
        from seatrial.environment.model_proxy.proxy import ModelProxy  # an HTTP server, for those who record alone

        self.folder, self.mode = folder, mode
        self._proxy = ModelProxy(mode, upstreams, variables)

    @property
    def address(self) -> ProxyAddress:
        """Where trials find the proxy."""
        return self._proxy.address

    @property
    def seed(self) -> int | None:
        """Of the run that recorded: what is drawn by chance is then drawn alike. None where nothing was recorded."""
        return read_seed(self.folder)

    @contextmanager
    def running(self, info: RunInfo, redactor: Redactor) -> Iterator[None]:
        """Record or replay this run's model calls while this lasts.

        Raises StorageError, before anything runs, for a cassette that is not whole or a folder that cannot be used.
        """
        try:
            library = CassetteFolder(self.folder, info.build_id, digest(redactor.value(info.agent)))
            self._check_folder()
            for case_id in info.cases:
                library.read(case_id)
            if self.mode == "record":
                write_seed(self.folder, info.seed)
            self._proxy.open(library, Masks(redactor))
            with in_force(self.address):
                yield
        finally:
            self.close()

    def _check_folder(self) -> None:
        if self.mode == "replay":
            if not self.folder.is_dir():
                raise UsageError(f"{self.folder}: there is no such folder of cassettes; record one first")
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.folder}: cannot be written ({error.strerror or error})") from error

    def close(self) -> None:
        """Let go of the port."""
        self._proxy.close()


def cassettes_for(project: Project, hidden: Set[str], folder: Path | None, mode: str | None) -> Cassettes | None:
    """The cassettes that are asked for; None when they are off. `hidden` are selected cases that must not be shown.

    UsageError when what is asked for makes no sense.
    """
    if mode is None and folder is not None:
        raise UsageError("say with --cassette-mode whether to record or replay the cassettes in --cassettes")
    if mode is None or mode == "off":
        return None
    if folder is None:
        raise UsageError(f"--cassette-mode {mode} needs --cassettes DIR, the folder of the recordings")
    if hidden:
        raise UsageError(
            f"{min(hidden)} is a hidden case: a cassette would show what it asks; run it without cassettes"
        )
    return Cassettes(Path(folder).absolute(), "record" if mode == "record" else "replay", *_upstreams(project, mode))


def _upstreams(project: Project, mode: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Every URL by its name, and which of the names are variables."""
    variables = {OPENAI: DEFAULT_UPSTREAM, **project.model_proxy.variables}
    urls = {name: os.environ.get(name) or default for name, default in variables.items()}
    unknown = [name for name, url in urls.items() if not url]
    if unknown and mode == "record":
        raise UsageError(
            f"model_proxy.env: {unknown[0]} is not set, so where its calls go is unknown; give its URL: "
            f"env: {{{unknown[0]}: https://...}}"
        )
    return _checked({**urls, **project.model_proxy.upstreams}), tuple(urls)


def _checked(upstreams: Mapping[str, str]) -> dict[str, str]:
    for name, url in upstreams.items():
        if url and not url.startswith(("http://", "https://")):
            raise UsageError(f"model_proxy: {name} is {url!r}, which is no http:// or https:// address")
    return dict(upstreams)


@contextmanager
def loading(cassettes: Cassettes | None) -> Iterator[None]:
    """While this lasts a project is loaded: clients that its modules make belong to the run. What fails ends it."""
    try:
        with in_force(None if cassettes is None else cassettes.address):
            yield
    except BaseException:
        if cassettes is not None:
            cassettes.close()
        raise


@contextmanager
def running(cassettes: Cassettes | None, info: RunInfo, redactor: Redactor) -> Iterator[None]:
    """While this lasts the run's model calls are recorded or replayed, where they are to be."""
    if cassettes is None:
        yield
        return
    with cassettes.running(info, redactor):
        yield


def model_urls(project: Project) -> dict[str, str]:
    """Where agents find their models when nothing is recorded: what is set, and what the project names."""
    variables = {OPENAI: "", **project.model_proxy.variables}
    urls = {name: os.environ.get(name) or default for name, default in variables.items()}
    return {name: url for name, url in {**urls, **project.model_proxy.upstreams}.items() if url}
