"""Spans on file, graded as they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from graphs import Driven, drive
from projects import write_project
from seatrial.agents.detect import load_agent
from seatrial.agents.otel.files import read_spans
from seatrial.cli import _exit_code
from seatrial.core.project import AgentSpec
from seatrial.core.trace import CallState, Observable, Usage
from seatrial.errors import UsageError
from seatrial.harness.gating import Candidate

DATA = Path(__file__).parents[1] / "data" / "otel"
REAL = ("OPENAI", "LANGCHAIN", "TINYAGENT")
TASK = [("get_current_time", {"timezone": "America/New_York"}), ("write_file", {"text": "2025"})]


def driven_by(path: Path) -> Driven:
    agent = load_agent(AgentSpec(target=str(path), kind="otel"))
    return drive(agent)


def otlp(*spans: dict[str, Any]) -> str:
    """OTLP of spans given as (name, parent, start, end, attributes ...)."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "test"}, "spans": list(spans)}]}]})


def span(name: str, start: int, end: int, parent: str = "", **attributes: Any) -> dict[str, Any]:
    values = [{"key": key.replace("__", "."), "value": any_value(value)} for key, value in attributes.items()]
    made = {"traceId": "aa", "spanId": f"{name}@{start}", "name": name, "attributes": values}
    times = {"startTimeUnixNano": str(start * 10**6), "endTimeUnixNano": str(end * 10**6)}
    return {**made, **times, **({"parentSpanId": parent} if parent else {})}


def any_value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def model(start: int, end: int, *asks: tuple[str, str, dict[str, Any]], text: str = "", **more: Any) -> dict[str, Any]:
    parts = [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in asks]
    said = json.dumps([{"role": "assistant", "parts": [*parts, {"type": "text", "content": text}]}])
    given = {"gen_ai__operation__name": "chat", "gen_ai__response__model": "small", "gen_ai__output__messages": said}
    return span("chat small", start, end, **{**given, **more})


def tool(name: str, start: int, end: int, arguments: dict[str, Any], call_id: str = "", **more: Any) -> dict[str, Any]:
    given = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    ids = {"gen_ai__tool__call__id": call_id} if call_id else {}
    texts = {"gen_ai__tool__call__arguments": json.dumps(arguments), "gen_ai__tool__call__result": f"{name} done"}
    return span(f"execute_tool {name}", start, end, **given, **ids, **texts, **more)


def driven(tmp_path: Path, *spans: dict[str, Any]) -> Driven:
    (tmp_path / "case.json").write_text(otlp(*spans))
    return driven_by(tmp_path)


# --- real files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path: Path, request: pytest.FixtureRequest) -> Driven:
    (tmp_path / "case.json").write_bytes((DATA / f"any-agent__{request.param}_trace.json").read_bytes())
    return driven_by(tmp_path)


@pytest.mark.parametrize("real", REAL, indirect=True)
def test_the_same_task_of_three_frameworks_has_the_same_calls(real: Driven) -> None:
    calls = [(call.name, call.arguments) for call in real.calls if call.name != "final_answer"]
    assert calls == TASK
    assert all(call.state is CallState.EXECUTED for call in real.calls)
    assert real.calls[0].result["is_dst"] is True
    assert {call.agent for call in real.calls} == {"any_agent"}


@pytest.mark.parametrize(("real", "steps", "tokens"), [("OPENAI", 3, 1020), ("TINYAGENT", 4, 1369)], indirect=["real"])
def test_model_calls_have_their_tokens_and_costs(real: Driven, steps: int, tokens: int) -> None:
    assert real.trace.steps == steps
    assert real.record.tokens.input == tokens
    assert real.model_calls[0].model == "mistral/mistral-small-latest"
    assert real.model_calls[0].cost_usd == pytest.approx(269e-7 + 4.8e-6 if steps == 3 else 328e-7 + 4.8e-6)
    assert [call.step for call in real.calls[:2]] == [event.number for event in real.model_calls[:2]]


@pytest.mark.parametrize("real", REAL, indirect=True)
def test_what_the_spans_cannot_show_is_not_observed_and_says_why(real: Driven) -> None:
    assert {Observable.TOOL_CALLS, Observable.MODEL_CALLS, Observable.USAGE, Observable.OUTPUT} <= real.trace.observes
    assert Observable.APPROVALS not in real.trace.observes
    assert real.trace.unobserved[Observable.APPROVALS] == "spans do not show approvals"
    assert real.output["steps"][0]["number"] == 1


# --- what spans mean -----------------------------------------------------------------------------------------------


def test_calls_of_one_reply_share_a_step_and_overlap_in_time(tmp_path: Path) -> None:
    seen = driven(
        tmp_path,
        model(0, 10, ("c1", "a", {}), ("c2", "b", {})),
        tool("a", 11, 30, {}, "c1"),
        tool("b", 12, 20, {}, "c2"),
        model(31, 40, text="done"),
    )
    first, second = seen.calls
    assert (first.call_id, second.call_id) == ("c1", "c2")
    assert first.step == second.step == 2
    assert second.number < (first.ended or 0), "they overlapped"
    assert seen.output == "done"
    assert [event.at_ms for event in seen.trace.events if event.kind != "message"] == [0.0, 11.0, 12.0, 31.0]


def test_a_call_without_an_id_takes_the_id_that_was_asked_for(tmp_path: Path) -> None:
    seen = driven(
        tmp_path,
        model(0, 1, ("c1", "a", {"x": 1}), ("c2", "a", {"x": 2})),
        tool("a", 2, 4, {"x": 2}),
        tool("a", 3, 5, {"x": 1}),
    )
    assert {call.call_id: call.arguments for call in seen.calls} == {"c1": {"x": 1}, "c2": {"x": 2}}


def test_a_failing_call_keeps_its_exception(tmp_path: Path) -> None:
    failed = tool("a", 2, 3, {})
    failed["status"] = {"code": 2, "message": "boom"}
    raised = [any_attribute("exception.type", "builtins.ValueError"), any_attribute("exception.message", "boom")]
    failed["events"] = [{"name": "exception", "attributes": raised}]
    (call,) = driven(tmp_path, model(0, 1, ("c1", "a", {})), failed).calls
    assert (call.state, call.error) == (CallState.FAILED, "ValueError: boom")


def any_attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def test_a_framework_that_stops_for_approval_has_not_failed(tmp_path: Path) -> None:
    stopped = tool("a", 2, 3, {}, "c1")
    stopped["status"] = {"code": 2}
    stopped["events"] = [{"name": "exception", "attributes": [any_attribute("exception.type", "x.GraphInterrupt")]}]
    (call,) = driven(tmp_path, model(0, 1, ("c1", "a", {})), stopped, tool("a", 5, 6, {}, "c1")).calls
    assert (call.state, call.call_id, call.attempt) == (CallState.EXECUTED, "c1", 1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transfer_to_boss", {"order": "O-1", "reason": "limit"}),
        ("transfer_to_agent", {"agent_name": "boss", "order": "O-1", "reason": "limit"}),
        ("handoff", {"to_agent": "boss", "order": "O-1", "reason": "limit"}),
    ],
)
def test_a_tool_that_hands_over_is_a_handoff(name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    seen = driven(
        tmp_path,
        span("invoke_agent desk", 0, 9, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="desk"),
        model(1, 2, ("c1", name, arguments)) | {"parentSpanId": "invoke_agent desk@0"},
        tool(name, 3, 4, arguments, "c1") | {"parentSpanId": "invoke_agent desk@0"},
        span("handoff to boss", 4, 4, "invoke_agent desk@0", openinference__span__kind="TOOL"),
    )
    (handoff,) = seen.handoffs
    assert (handoff.source, handoff.target, handoff.reason) == ("desk", "boss", "limit")
    assert handoff.context == {"order": "O-1"}
    assert seen.calls == []


def test_handing_over_twice_by_tools_alone_is_two_handoffs(tmp_path: Path) -> None:
    seen = driven(
        tmp_path,
        model(0, 1, ("c1", "transfer_to_boss", {})),
        tool("transfer_to_boss", 2, 3, {}, "c1"),
        model(4, 5, ("c2", "transfer_to_boss", {})),
        tool("transfer_to_boss", 6, 7, {}, "c2"),
    )
    assert [handoff.target for handoff in seen.handoffs] == ["boss", "boss"]


def test_a_client_s_span_within_the_framework_s_is_one_model_call(tmp_path: Path) -> None:
    outer = model(0, 10, text="hi", gen_ai__usage__input_tokens=7, gen_ai__usage__output_tokens=3)
    inner = model(1, 9, text="hi", gen_ai__usage__input_tokens=7) | {"parentSpanId": outer["spanId"]}
    seen = driven(tmp_path, outer, inner)
    assert seen.trace.steps == 1
    assert (seen.record.tokens.input, seen.record.tokens.output) == (7, 3)


def test_open_inference_names_mean_the_same(tmp_path: Path) -> None:
    asked = "llm__output_messages__0__message__tool_calls__0__tool_call"
    seen = driven(
        tmp_path,
        span("desk", 0, 20, openinference__span__kind="AGENT", agent__name="desk"),
        span(
            "ScriptedModel",
            1,
            5,
            "desk@0",
            openinference__span__kind="LLM",
            llm__model_name="small",
            llm__token_count__prompt=30,
            llm__token_count__completion=4,
            llm__token_count__prompt_details__cache_read=20,
            **{
                f"{asked}__id": "c1",
                f"{asked}__function__name": "add",
                f"{asked}__function__arguments": '{"a": 1}',
            },
        ),
        span("add", 6, 7, "desk@0", openinference__span__kind="TOOL", tool__name="add", input__value="{'a': 1}"),
    )
    (call,) = seen.calls
    assert (call.name, call.arguments, call.call_id, call.agent, call.step) == ("add", {"a": 1}, "c1", "desk", 2)
    assert (seen.record.tokens.input, seen.record.tokens.cached) == (30, 20)


def test_without_the_models_words_silence_about_tools_proves_nothing(tmp_path: Path) -> None:
    mute = span("chat small", 0, 1, gen_ai__operation__name="chat", gen_ai__output__type="text")
    seen = driven(tmp_path, mute)
    assert Observable.TOOL_CALLS not in seen.trace.observes
    assert "capturing messages is off" in seen.trace.unobserved[Observable.TOOL_CALLS]
    spoken = driven(tmp_path, model(0, 1, text="hi"))
    assert Observable.TOOL_CALLS in spoken.trace.observes


def test_a_sum_of_parallel_calls_is_no_call(tmp_path: Path) -> None:
    merged = tool("(merged tools)", 3, 4, {}) | {"name": "execute_tool (merged)"}
    assert len(driven(tmp_path, model(0, 1, ("c", "a", {})), tool("a", 2, 3, {}, "c"), merged).calls) == 1


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_stored_run_exported_and_read_again_is_the_same_trace(tmp_path: Path, monkeypatch: Any) -> None:
    source = """
        def good(environment):
            def answer(task):
                lookup = environment.tool(look_up, agent="desk")
                return f"it is {lookup(order=task)['state']}"
            return answer

        def look_up(order: str) -> dict:
            return {"state": "sent", "order": order}
        """
    case = "input: O-1\nexpected:\n  answer: sent\n  required_tools: [{name: look_up, arguments: {order: O-1}}]\n"
    write_project(
        tmp_path,
        {
            "seatrial.yaml": "version: 1\nagent: my_agent:good\nbuilds: {spans: {target: spans.jsonl, kind: otel}}\n",
            "my_agent.py": source,
            "cases/a/one.yaml": "id: one\n" + case,
            "cases/a/two.yaml": "id: two\n" + case.replace("O-1", "O-2"),
        },
    )
    monkeypatch.chdir(tmp_path)
    live = api.run(tmp_path, trials=2)
    assert _exit_code(["export", str(live.folder), "spans.jsonl"]) == 0
    graded = api.run(tmp_path, build="spans", trials=2)
    assert graded.exit_code == live.exit_code == 0

    again = api.run(tmp_path, build="spans", trials=2)
    with pytest.raises(UsageError, match=r"both of the spans in spans\.jsonl; pooled runs are independent evidence"):
        Candidate([graded.folder, again.folder])

    def told(run: Any) -> list[Any]:
        keyed = sorted(run.trials, key=lambda record: str(record.key))
        return [
            (str(r.key), r.output, [(g.name, g.verdict) for g in r.grades], run.trace(r).tool_calls[0].arguments)
            for r in keyed
        ]

    assert told(graded) == told(live)
    observed = live.trace(live.trials[0]).observes - {Observable.APPROVALS}
    assert graded.trace(graded.trials[0]).observes == observed


def test_a_trial_without_spans_is_invalid_and_not_the_agents_failure(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(otlp(model(0, 1, text="hi")))
    seen = driven_by(tmp_path)
    assert (seen.record.status, seen.record.invalid_reason) == ("invalid", "fixture")
    assert "has no spans of case#1" in seen.record.detail


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "case.json:1: this is no JSON"),
        ('{"traces": []}', "case.json: a span lacks 'context'"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}', "traceId"),
        ("[1, 2]", "a file of spans holds OTLP JSON"),
    ],
)
def test_a_file_that_holds_no_spans_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        read_spans(path)


def test_the_sdk_s_own_form_is_read_too(tmp_path: Path) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("mine")
    with (
        tracer.start_as_current_span("invoke_agent desk", attributes={"gen_ai.operation.name": "invoke_agent"}),
        tracer.start_as_current_span("execute_tool a", attributes={"gen_ai.operation.name": "execute_tool"}),
    ):
        pass
    path = tmp_path / "case.jsonl"
    path.write_text("\n".join(one.to_json(indent=None) for one in exporter.get_finished_spans()))
    inner, outer = read_spans(path).spans
    assert (inner.name, inner.parent_id) == ("execute_tool a", outer.span_id)
    assert inner.end_ns is not None
    assert inner.start_ns <= inner.end_ns
    (call,) = driven_by(tmp_path).calls
    assert (call.name, call.agent) == ("a", "desk")


def test_a_missing_path_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no such file or folder of spans"):
        load_agent(AgentSpec(target="nowhere/", kind="otel"))


# --- what is missing -----------------------------------------------------------------------------------------------


def asked_for(*names: str) -> dict[str, Any]:
    return model(0, 1, *((f"c{n}", name, {}) for n, name in enumerate(names)), text="working on it")


def test_a_root_that_failed_is_the_agents_failure_whatever_was_said_before(tmp_path: Path) -> None:
    root = span("invoke_agent desk", 0, 9, gen_ai__operation__name="invoke_agent", output__value="done")
    root["status"] = {"code": 2, "message": "boom"}
    raised = [any_attribute("exception.type", "ZeroDivisionError"), any_attribute("exception.message", "boom")]
    root["events"] = [{"name": "exception", "attributes": raised}]
    seen = driven(tmp_path, root, asked_for() | {"parentSpanId": "invoke_agent desk@0"})
    assert (seen.trace.stop_reason, seen.record.status) == ("agent_error", "failed")
    assert seen.record.error is not None
    assert "ZeroDivisionError: boom" in seen.record.error.message


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        ([asked_for("lookup", "pay"), tool("lookup", 2, 3, {}, "c0")], "a model asked for pay, and no span says"),
        ([tool("lookup", 2, 3, {}) | {"parentSpanId": "lost"}], "the parent of the span 'execute_tool lookup' is miss"),
        (
            [
                span("invoke_agent a", 0, 9, "elsewhere", gen_ai__operation__name="invoke_agent"),
                tool("lookup", 2, 3, {}) | {"parentSpanId": "lost"},
            ],
            "is missing, so spans were lost",
        ),
        (
            [span("invoke_agent a", 0, 0, gen_ai__operation__name="invoke_agent"), tool("lookup", 2, 3, {})],
            "the span 'invoke_agent a' never ended",
        ),
        ([tool("lookup", 2, 3, {}) | {"droppedAttributesCount": 2}], "had attributes or events left out"),
    ],
)
def test_where_spans_are_known_to_be_missing_no_call_is_ruled_out(
    spans: list[dict[str, Any]], why: str, tmp_path: Path
) -> None:
    for each in spans:
        if each["endTimeUnixNano"] == "0":
            del each["endTimeUnixNano"]
    seen = driven(tmp_path, *spans)
    assert Observable.TOOL_CALLS not in seen.trace.observes
    assert why in seen.trace.unobserved[Observable.TOOL_CALLS]
    assert [call.name for call in seen.calls] == ["lookup"], "what was seen stays on record"


def test_an_agent_whose_parent_is_the_service_that_asked_it_is_whole(tmp_path: Path) -> None:
    root = span("invoke_agent a", 0, 9, "elsewhere", gen_ai__operation__name="invoke_agent", output__value="done")
    seen = driven(tmp_path, root, tool("lookup", 2, 3, {}) | {"parentSpanId": "invoke_agent a@0"})
    assert {Observable.TOOL_CALLS, Observable.OUTPUT} <= seen.trace.observes


def test_a_span_that_names_itself_as_its_parent_is_at_the_top(tmp_path: Path) -> None:
    root = span("work", 0, 9, "work@0", output__value="done")
    assert driven(tmp_path, root).output == "done"
    unended = {name: value for name, value in root.items() if name != "endTimeUnixNano"}
    why = driven(tmp_path, unended).trace.unobserved[Observable.OUTPUT]
    assert why == "the span 'work' never ended, so spans may be missing"


def test_an_answers_form_that_a_model_fills_in_is_no_lost_call(tmp_path: Path) -> None:
    seen = driven(tmp_path, asked_for("lookup", "final_result"), tool("lookup", 2, 3, {}, "c0"))
    assert Observable.TOOL_CALLS in seen.trace.observes


def test_of_a_call_without_an_end_nobody_knows_what_became(tmp_path: Path) -> None:
    unended = tool("lookup", 2, 3, {})
    del unended["endTimeUnixNano"]
    root = span("invoke_agent a", 0, 9, gen_ai__operation__name="invoke_agent")
    (call,) = driven(tmp_path, root, unended | {"parentSpanId": "invoke_agent a@0"}).calls
    assert (call.state, call.error) == (CallState.UNKNOWN, "its span never ended")


def test_spans_of_another_case_are_not_graded(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(otlp(span("invoke_agent a", 0, 9, seatrial__case="another")))
    seen = driven_by(tmp_path)
    assert seen.record.invalid_reason == "fixture"
    assert "these spans name another case, another" in seen.record.detail


def test_a_file_of_one_trial_holds_one_trace(tmp_path: Path) -> None:
    one, two = model(0, 1, text="a"), model(2, 3, text="b") | {"traceId": "bb"}
    (tmp_path / "case.json").write_text(otlp(one, two))
    assert "holds 2 traces" in driven_by(tmp_path).record.detail


def test_calls_that_were_replayed_elsewhere_stay_replayed(tmp_path: Path) -> None:
    root = span("invoke_agent a", 0, 9, gen_ai__operation__name="invoke_agent", seatrial__replayed=3)
    assert driven(tmp_path, root).record.replayed == 3


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_bytes(b"\xef\xbb\xbf" + otlp(model(0, 1, text="hi")).encode())
    assert driven_by(tmp_path).output == "hi"


NO_COUNTS = [{"intValue": "-3"}, {"doubleValue": 2.5}, {"boolValue": True}, {"stringValue": "many"}]


@pytest.mark.parametrize("value", NO_COUNTS)
def test_a_number_of_tokens_that_is_none_is_unknown(value: dict[str, Any], tmp_path: Path) -> None:
    said = model(0, 1, text="hi", gen_ai__usage__output_tokens=3)
    said["attributes"].append({"key": "gen_ai.usage.input_tokens", "value": value})
    (call,) = driven(tmp_path, said).model_calls
    assert call.usage == Usage(output=3)


@pytest.mark.parametrize("value", [{"doubleValue": -1.0}, {"boolValue": True}, {"stringValue": "much"}])
def test_a_cost_that_is_no_amount_is_unknown(value: dict[str, Any], tmp_path: Path) -> None:
    said = model(0, 1, text="hi")
    said["attributes"].append({"key": "seatrial.cost_usd", "value": value})
    (call,) = driven(tmp_path, said).model_calls
    assert call.cost_usd is None


def test_an_exported_handoff_keeps_its_reason_context_and_refusal(tmp_path: Path) -> None:
    given = {
        "gen_ai__handoff__from_agent": "desk",
        "seatrial__reason": "limit",
        "seatrial__context": '{"order": "O-1"}',
    }
    done = span("handoff to boss", 1, 1, gen_ai__handoff__to_agent="boss", **given)
    refused = span("handoff to ghost", 2, 2, gen_ai__handoff__to_agent="ghost", gen_ai__handoff__from_agent="boss")
    refused["attributes"].append({"key": "seatrial.completed", "value": {"boolValue": False}})
    first, second = driven(tmp_path, done, refused).handoffs
    assert (first.reason, first.context, first.completed) == ("limit", {"order": "O-1"}, True)
    assert (second.target, second.completed) == ("ghost", False)


def test_approvals_and_outcomes_of_an_exported_run_are_not_taken_for_observed(tmp_path: Path) -> None:
    root = span("trial", 0, 9)
    names = [{"stringValue": name} for name in ("approvals", "outcome", "tool_calls")]
    root["attributes"].append({"key": "seatrial.observes", "value": {"arrayValue": {"values": names}}})
    seen = driven_by_folder(tmp_path, root, state={"refund": "none"}, outcome={"refund": {"state": "refund"}})
    assert Observable.TOOL_CALLS in seen.trace.observes
    assert not {Observable.APPROVALS, Observable.OUTCOME} & seen.trace.observes
    assert seen.record.outcome is None, "nothing worked on this trial's own surroundings"


def driven_by_folder(folder: Path, *spans: dict[str, Any], **fixture: Any) -> Driven:
    (folder / "case.json").write_text(otlp(*spans))
    return drive(load_agent(AgentSpec(target=str(folder), kind="otel")), **fixture)


def test_an_agents_error_counts_below_a_services_own_span(tmp_path: Path) -> None:
    served = span("POST /ask", 0, 20, http__route="/ask")
    agent = span("invoke_agent a", 1, 9, "POST /ask@0", gen_ai__operation__name="invoke_agent")
    agent["status"] = {"code": 2, "message": "boom"}
    seen = driven(tmp_path, served, agent, asked_for() | {"parentSpanId": "invoke_agent a@1"})
    assert seen.trace.stop_reason == "agent_error"


@pytest.mark.parametrize(("called", "observed"), [(True, True), (False, False)])
def test_a_model_that_stopped_for_a_tool_without_words_needs_a_call(
    called: bool, observed: bool, tmp_path: Path
) -> None:
    mute = {"gen_ai__operation__name": "chat", "gen_ai__response__finish_reasons": '["tool_calls"]'}
    earlier = [span("chat", 0, 1, **mute), tool("lookup", 2, 3, {})]
    later = [span("chat", 4, 5, **mute), *([tool("pay", 6, 7, {})] if called else []), model(8, 9, text="done")]
    seen = driven(tmp_path, *earlier, *later)
    assert (Observable.TOOL_CALLS in seen.trace.observes) is observed


def test_where_spans_were_lost_there_is_no_answer_to_grade(tmp_path: Path) -> None:
    lost = model(0, 1, text="y") | {"parentSpanId": "lost"}
    seen = driven(tmp_path, lost)
    assert (seen.output, Observable.OUTPUT in seen.trace.observes) == (None, False)
