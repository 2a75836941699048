"""A run as OpenTelemetry's JSON: what OpenTelemetry's own schema reads, and everything that a trial's trace says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from seatrial.core.agent_run import HandoffEvent
from seatrial.core.grade import Grade, Verdict
from seatrial.core.run import RunInfo
from seatrial.core.trace import AgentError, StopReason, Trace, Usage
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.environment.recorder import Recorder
from seatrial.report.otlp import otlp_lines
from traces import finished, record, tool_call

INFO = RunInfo(run_id="run-1", build_id="good", versions={"seatrial": "0.1.0"}, started="2026-05-01T10:00:00Z")
STARTED_NS = 1_777_629_600_000_000_000


def a_trace() -> Trace:
    recorder = Recorder()
    recorder.message("user", "refund it")
    call = recorder.begin_model_call("small", agent="desk")
    recorder.end_model_call(call, usage=Usage(input=30, output=5, cached=20))
    record(recorder, tool_call("lookup", {"id": "O-1"}, result={"price": 9}, call_id="c1", step=call))
    record(recorder, tool_call("pay", {"amount": 2**70}, state="failed", error="TimeoutError: no answer", step=call))
    recorder.report(HandoffEvent("desk", "boss", reason="limit", context={"order": "O-1"}))
    return finished(recorder, output="handed over")


def a_record(trace: Trace, **fields: Any) -> TrialRecord:
    grade = Grade(name="answer", verdict=Verdict.FAIL, score=0.0, reason="it does not say 'refunded'")
    given = {"case_id": "refund", "suite": "smoke", "status": TrialStatus.FAILED, "grades": (grade,), **fields}
    return TrialRecord(output=trace.output, latency_ms=40.0, **{"stop_reason": StopReason.ANSWERED, **given})


def spans_of(*finished_trials: tuple[TrialRecord, Trace]) -> list[dict[str, Any]]:
    lines = list(otlp_lines(INFO, finished_trials))
    for line in lines:
        json_format.Parse(line, TracesData())
    return [span for line in lines for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]]


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def one_trial() -> dict[str, dict[str, Any]]:
    trace = a_trace()
    return {span["name"]: span for span in spans_of((a_record(trace), trace))}


def test_the_root_of_a_replayed_trial_says_how_many_answers_were_replayed() -> None:
    trace = a_trace()
    roots = [spans_of((a_record(trace, replayed=count), trace))[0] for count in (2, 0)]
    assert attributes(roots[0])["seatrial.replayed"] == "2"
    assert "seatrial.replayed" not in attributes(roots[1])


def test_the_spans_form_one_tree_below_the_trial() -> None:
    spans = one_trial()
    by_id = {span["spanId"]: span["name"] for span in spans.values()}
    parents = {name: by_id.get(span.get("parentSpanId")) for name, span in spans.items()}
    assert parents == {
        "trial refund#1": None,
        "invoke_agent desk": "trial refund#1",
        "chat small": "invoke_agent desk",
        "execute_tool lookup": "trial refund#1",
        "execute_tool pay": "trial refund#1",
        "handoff to boss": "invoke_agent desk",
    }
    assert len({span["traceId"] for span in spans.values()}) == 1


def test_a_model_call_has_its_model_and_each_kind_of_token() -> None:
    values = attributes(one_trial()["chat small"])
    assert values["gen_ai.operation.name"] == "chat"
    assert values["gen_ai.response.model"] == "small"
    assert values["gen_ai.usage.input_tokens"] == "30"
    assert values["gen_ai.usage.cache_read.input_tokens"] == "20"
    assert "gen_ai.usage.reasoning.output_tokens" not in values, "unknown is left out, never zero"


def test_a_tool_call_has_id_arguments_result_and_state() -> None:
    values = attributes(one_trial()["execute_tool lookup"])
    assert values["gen_ai.tool.call.id"] == "c1"
    assert json.loads(values["gen_ai.tool.call.arguments"]) == {"id": "O-1"}
    assert json.loads(values["gen_ai.tool.call.result"]) == {"price": 9}
    assert values["seatrial.state"] == "executed"


def test_a_failed_call_is_an_error_with_its_exception() -> None:
    span = one_trial()["execute_tool pay"]
    assert span["status"] == {"code": 2, "message": "TimeoutError: no answer"}
    assert [event["name"] for event in span["events"]] == ["exception"]
    assert str(2**70) in attributes(span)["gen_ai.tool.call.arguments"]


def test_a_handoff_has_both_agents_and_its_context() -> None:
    values = attributes(one_trial()["handoff to boss"])
    assert (values["gen_ai.handoff.from_agent"], values["gen_ai.handoff.to_agent"]) == ("desk", "boss")
    assert json.loads(values["seatrial.context"]) == {"order": "O-1"}


def test_the_trial_has_status_grades_and_what_was_said() -> None:
    root = one_trial()["trial refund#1"]
    values = attributes(root)
    assert "status" not in root, "what graders say is no error of the agent's"
    assert values["seatrial.status"] == "failed"
    assert json.loads(values["gen_ai.input.messages"])[0]["parts"] == [{"type": "text", "content": "refund it"}]
    assert json.loads(values["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": "handed over"}]
    graded = [event for event in root["events"] if event["name"] == "gen_ai.evaluation.result"]
    assert attributes(graded[0])["gen_ai.evaluation.score.label"] == "fail"
    assert attributes(graded[0])["gen_ai.evaluation.score.value"] == 0.0


def test_every_span_lies_within_the_trial_and_the_trial_begins_with_the_run() -> None:
    spans = one_trial()
    root = spans["trial refund#1"]
    for span in spans.values():
        assert STARTED_NS <= int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])


def test_the_same_trial_has_the_same_ids_and_every_other_its_own() -> None:
    trace = a_trace()
    keys = [{}, {"trial_index": 2}, {"attempt": 2}, {"case_id": "other"}]
    lines = list(otlp_lines(INFO, [(a_record(trace, **key), trace) for key in keys]))
    assert lines == list(otlp_lines(INFO, [(a_record(trace, **key), trace) for key in keys]))
    traces = [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] for line in lines]
    assert len(set(traces)) == len(keys)


@pytest.mark.parametrize("output", [None, {"a": [1, None]}, "\ud800 lone", 3.5])
def test_a_trial_that_did_little_is_still_a_trace(output: Any) -> None:
    trace = Trace(stop_reason=StopReason.AGENT_ERROR, output=output)
    error = AgentError(type="builtins.ValueError", message="boom")
    (span,) = spans_of(
        (
            a_record(
                trace, grades=(), error=error, stop_reason=StopReason.AGENT_ERROR, detail="raised ValueError: boom"
            ),
            trace,
        )
    )
    assert span["status"]["message"] == "raised ValueError: boom"
    assert ("gen_ai.output.messages" in attributes(span)) is (output is not None)
