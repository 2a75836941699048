"""What LlamaIndex's instrumentation calls: passes everything to the recorder of the context it happens in."""

from __future__ import annotations

from typing import Any

from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from seatrial.agents.llamaindex.recording import recording

__all__ = ["Events", "Spans"]


class Events(BaseEventHandler):
    """Events of models and retrievers."""

    @classmethod
    def class_name(cls) -> str:
        return "SeatrialEvents"

    def handle(self, event: Any, **_: Any) -> None:
        recorder = recording.here()
        if recorder is not None:
            recorder.happened(event)


class Spans(BaseSpanHandler[Any]):
    """Calls of models, tools and workflow steps, as they begin and end."""

    @classmethod
    def class_name(cls) -> str:
        return "SeatrialSpans"

    def span_enter(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        recorder = recording.here()
        if recorder is not None:
            recorder.entered(id_, instance, bound_args.arguments)

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any) -> None:
        recorder = recording.here()
        if recorder is not None:
            recorder.left(id_, result)

    def span_drop(
        self, id_: str, bound_args: Any, instance: Any = None, err: BaseException | None = None, **_: Any
    ) -> None:
        recorder = recording.here()
        if recorder is not None:
            recorder.dropped(id_, err)

    def new_span(self, *_: Any, **__: Any) -> None:
        """Nothing is kept here."""

    def prepare_to_exit_span(self, *_: Any, **__: Any) -> None:
        """Likewise."""

    def prepare_to_drop_span(self, *_: Any, **__: Any) -> None:
        """Likewise."""
