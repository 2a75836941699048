"""Names that stand for code: `name -> "module:object"`, loaded on first use.

Built-in names stand in the tables below; other packages add theirs through entry points of the group
`seatrial.<kind>`. A name that looks like an import path (`package.module:object`) is taken as one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seatrial.errors import UsageError, did_you_mean

__all__ = ["Registry", "load_object"]


def load_object(path: str) -> Any:
    """The object at `module:attribute.path`.

    Raises UsageError when the path is malformed, the module cannot be found, raises while it is imported (the message
    says what and where), or lacks the attribute.
    """
    module_name, colon, attributes = path.partition(":")
    if not (colon and module_name and attributes):
        raise UsageError(f"{path!r} is not an import path; write module:object, such as my_module:my_function")
    target = _imported(module_name, path)
    for attribute in attributes.split("."):
        if not hasattr(target, attribute):
            public = [name for name in vars(target) if not name.startswith("_")] if hasattr(target, "__dict__") else []
            hint = did_you_mean(attribute, public)
            raise UsageError(f"{path!r}: {module_name} has no {attribute!r}" + (f"; {hint}" if hint else ""))
        target = getattr(target, attribute)
    return target


def _imported(module_name: str, path: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise UsageError(f"{path!r}: there is no module named {error.name!r}") from error
        raise UsageError(f"{path!r}: importing it needs {error.name!r}, which is not installed") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that people wrote may raise anything while it is imported
        raise UsageError(f"{path!r}: importing it raised {type(error).__name__}: {error}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """` (file:line)` of the innermost frame, for a message without a traceback."""
    if isinstance(error, SyntaxError):
        return ""  # its text names the place already
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"


@dataclass(frozen=True)
class Registry:
    """One kind of named thing (agents, graders, executors ...)."""

    kind: str
    """Singular noun, used in messages and in the entry point group `seatrial.<kind>`."""
    built_in: Mapping[str, str]
    """Name to import path."""

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Every known name with its import path; a built-in name is never replaced by a plug-in."""
        from importlib.metadata import entry_points

        plugged = {entry.name: entry.value for entry in entry_points(group=f"seatrial.{self.kind}")}
        return {**plugged, **self.built_in}

    def load(self, name: str) -> Any:
        """The object called `name`; UsageError with the nearest name when there is none."""
        if name in self.built_in:
            return load_object(self.built_in[name])
        if name in self.paths:
            return load_object(self.paths[name])
        hint = did_you_mean(name, list(self.paths))
        raise UsageError(f"unknown {self.kind} {name!r}" + (f"; {hint}" if hint else ""))
