"""One trial on the terminal: its events, its grades with the events they rest on, how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from seatrial.core.case import Case
from seatrial.core.encoding import SHOWN
from seatrial.core.grade import Grade, Verdict
from seatrial.core.ledger import Ledger
from seatrial.core.trace import (
    AgentError,
    Approval,
    CallState,
    ErrorEvent,
    Event,
    Fault,
    Guardrail,
    Handoff,
    Message,
    ModelCallEvent,
    Retrieval,
    SafetyEvent,
    StopReason,
    ToolCallEvent,
    Trace,
    Usage,
)
from seatrial.core.trial import Tokens, TrialRecord
from seatrial.report.literal import inline, value_text
from seatrial.report.screen import STATUS_STYLES, Cell, Screen, left, money, right, seconds, times
from seatrial.verdict.trials import Trial, Trials, reason_of

__all__ = ["call_text", "print_trace"]


def print_trace(
    console: Console,
    case: Case | None,
    record: TrialRecord,
    trace: Trace,
    attempts: Sequence[TrialRecord] = (),
) -> None:
    """Show one trial. `case` None: only the record and the trace are at hand. `attempts`: all of the trial's."""
    screen = Screen(console)
    _head(screen, case, record)
    _events(screen, trace, _blamed(record.grades))
    _output(screen, record)
    _grades(screen, record)
    _outcome(screen, record.outcome)
    if trace.log:
        screen.title("Printed by the agent")
        screen.line(screen.block(trace.log.rstrip("\n"), "dim"), indent=2)
    if record.error is not None:
        _error(screen, record.error)
    _leftovers(screen, record)
    console.print()
    screen.line(_foot(screen, record))
    if len(attempts) > 1:
        (trial,) = Trials(Ledger.of(attempts), record.case_id)
        screen.line(_all_attempts(screen, trial))


def call_text(name: str, arguments: Any, limit: int = SHOWN) -> str:
    """A call as one would write it: `lookup_order(order_id="O-100")`."""
    if isinstance(arguments, Mapping):
        shown = ", ".join(f"{key}={inline(value, limit)}" for key, value in arguments.items())
    else:
        shown = "" if arguments is None else inline(arguments, limit)
    return f"{name}({shown})"


# --- head ------------------------------------------------------------------------------------------------------------


def _head(screen: Screen, case: Case | None, record: TrialRecord) -> None:
    word = Text(str(record.status).upper(), style=f"bold {STATUS_STYLES[record.status]}")
    notes = screen.join([record.suite, case.risk if case else "", f"attempt {record.attempt}" * (record.attempt > 1)])
    notes.stylize("dim")
    screen.line(screen.join([word, screen.text(str(record.key), "bold"), notes], "  "))
    if case is not None and case.description:
        screen.line(screen.block(case.description, "dim"))
    why = reason_of(record)
    if why:
        screen.line(screen.block(why, STATUS_STYLES[record.status]))
    if case is not None and not isinstance(case.input, str):
        rows = [[screen.text(key, "dim"), screen.text(inline(value))] for key, value in case.input.items()]
        screen.title("Input")
        screen.rows(left("", ""), rows, header=False)


# --- events ----------------------------------------------------------------------------------------------------------


def _blamed(grades: Iterable[Grade]) -> dict[int, list[str]]:
    """Names of the grades that did not pass, by the number of each event they rest on."""
    found: dict[int, list[str]] = {}
    for grade in grades:
        if grade.verdict is not Verdict.PASS:
            for number in grade.evidence:
                found.setdefault(number, []).append(grade.name)
    return found


def _events(screen: Screen, trace: Trace, blamed: Mapping[int, Sequence[str]]) -> None:
    note = "" if trace.ordered else "the order between tool calls and hand-offs is unknown"
    screen.title("Events", note)
    if not trace.events:
        screen.line(Text("none were observed", style="dim"), indent=2)
        return
    turns = {event.turn for event in trace.events}
    rows: list[list[Cell]] = []
    turn = 0
    for event in trace.events:
        if len(turns) > 1 and event.turn != turn:
            turn = event.turn
            rows.append([Text(""), Text(f"turn {turn}", style="dim"), Text("")])
        rows.append(_row(screen, event, blamed.get(event.number, ())))
    screen.rows([*right(""), *left("", "")], rows, header=False)


def _row(screen: Screen, event: Event, blamed: Sequence[str]) -> list[Cell]:
    said = Text("\n").join(_said(screen, event))
    if blamed:
        said.append(f"\n^ {screen.plain(', '.join(blamed))}", style="red")
    number = Text(str(event.number), style="bold red" if blamed else "dim")
    return [number, screen.text(_who(event), "cyan"), said]


def _who(event: Event) -> str:
    if isinstance(event, Message) and (event.role != "assistant" or not event.agent):
        return event.role
    return event.agent or ""


def _said(screen: Screen, event: Event) -> list[Text]:
    """What happened, as lines."""
    return _TELLERS[type(event)](screen, event)


def _message(screen: Screen, event: Message) -> list[Text]:
    return [screen.block(value_text(event.content))]


def _retrieval(screen: Screen, event: Retrieval) -> list[Text]:
    head = Text.assemble(("looked up ", "bold"), screen.text(inline(event.query)))
    return [head, *(screen.block(value_text(context)) for context in event.contexts)]


def _guardrail(screen: Screen, event: Guardrail) -> list[Text]:
    word, style = ("passed", "") if event.passed else ("stopped it", "yellow")
    return [_headed(screen, f"guardrail {event.name}: {word}", event.details, style)]


def _fault(screen: Screen, event: Fault) -> list[Text]:
    where = "" if event.call is None else f" (event {event.call})"
    return [_headed(screen, f"injected fault: {event.fault} at {event.tool}{where}", event.details, "yellow")]


def _safety(screen: Screen, event: SafetyEvent) -> list[Text]:
    return [_headed(screen, f"safety: {event.event} (seen by the {event.source})", event.evidence, "red")]


def _error_event(screen: Screen, event: ErrorEvent) -> list[Text]:
    return [screen.block(f"{event.type}: {event.message}", "red")]


def _headed(screen: Screen, head: str, details: Any, style: str) -> Text:
    text = screen.text(head, style)
    return text if details is None else Text.assemble(text, "  ", screen.text(inline(details)))


def _model_call(screen: Screen, event: ModelCallEvent) -> list[Text]:
    parts: list[Cell] = [f"model {event.model}" if event.model else "model", _usage(event.usage)]
    text = screen.join(parts)
    text.stylize("dim")
    return [text if event.error is None else screen.join([text, screen.block(event.error, "red")])]


def _usage(usage: Usage | None) -> str:
    if usage is None:
        return "tokens unknown"
    known = {"in": usage.input, "out": usage.output, "cached": usage.cached, "reasoning": usage.reasoning}
    said = [f"{count:,} {kind}" for kind, count in known.items() if count is not None]
    return ", ".join(said) + " tokens" if said else "tokens unknown"


def _tool_call(screen: Screen, event: ToolCallEvent) -> list[Text]:
    name, _, rest = call_text(event.name, event.arguments).partition("(")
    head = Text.assemble(screen.text(name, "bold"), screen.text(f"({rest}"))
    notes = ["malformed arguments" * event.malformed, f"attempt {event.attempt}" * (event.attempt > 1)]
    notes.append("stand-in" * event.stand_in)
    said = ", ".join(note for note in notes if note)
    head.append(f"  {said}" if said else "", style="yellow" if event.malformed else "dim")
    found = [head]
    if event.asked is not None:
        found.append(Text.assemble(("asked ", "dim"), screen.text(call_text(event.name, event.asked))))
    arrow = f"{screen.marks.arrow} "
    if event.state is CallState.EXECUTED:
        found.append(Text.assemble((arrow, "dim"), screen.text(inline(event.result))))
    else:
        state = str(event.state).replace("_", " ")
        why = screen.block(f": {event.error}" if event.error else "", "red")
        found.append(Text.assemble((arrow, "dim"), (state, "bold red"), why))
    if event.told is not None:
        found.append(Text.assemble(("the model was told ", "dim"), screen.text(inline(event.told))))
    return found


def _handoff(screen: Screen, event: Handoff) -> list[Text]:
    verb = "hands over to " if event.completed else "tried to hand over to "
    found = [Text.assemble((verb, "bold" if event.completed else "yellow"), screen.text(event.target, "bold cyan"))]
    if event.reason:
        found.append(Text.assemble(("reason ", "dim"), screen.block(event.reason)))
    context = Text("not observed", style="dim") if event.context is None else screen.text(inline(event.context))
    if event.context != {}:
        found.append(Text.assemble(("context ", "dim"), context))
    return found


def _approval(screen: Screen, event: Approval) -> list[Text]:
    asked = Text.assemble(("asks to approve ", "bold"), screen.text(call_text(event.action, event.arguments)))
    style = "green" if event.decision in ("granted", "edited") else "yellow"
    answer = Text.assemble((f"{screen.marks.arrow} ", "dim"), (event.decision, style))
    if event.approver:
        answer.append_text(Text.assemble((" by ", "dim"), screen.text(event.approver)))
    if event.approved_arguments is not None:
        answer.append_text(screen.text(f": {call_text(event.action, event.approved_arguments)}"))
    return [asked, answer]


_TELLERS: Mapping[type[Any], Callable[[Screen, Any], list[Text]]] = {
    Message: _message,
    ModelCallEvent: _model_call,
    ToolCallEvent: _tool_call,
    Handoff: _handoff,
    Approval: _approval,
    Retrieval: _retrieval,
    Guardrail: _guardrail,
    Fault: _fault,
    SafetyEvent: _safety,
    ErrorEvent: _error_event,
}


# --- what came of it -------------------------------------------------------------------------------------------------


def _output(screen: Screen, record: TrialRecord) -> None:
    screen.title("Final output", f"whole in {screen.plain(record.output_file)}" if record.output_file else "")
    if record.output is None:
        screen.line(Text("none", style="dim"), indent=2)
        return
    screen.line(screen.block(value_text(record.output)), indent=2)


_MARK_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.ABSTAIN: "yellow"}


def _grades(screen: Screen, record: TrialRecord) -> None:
    screen.title("Grades")
    rows = [_grade(screen, grade) for grade in sorted(record.grades, key=lambda grade: grade.verdict is Verdict.PASS)]
    for failure in record.grader_failures:
        why = screen.block(f"the grader raised {failure.error}: {failure.message}")
        rows.append([Text(screen.marks.broke, style="yellow"), screen.text(failure.name), Text(""), why])
    if not rows:
        screen.line(Text("none", style="dim"), indent=2)
        return
    screen.rows([*left("", ""), *right(""), *left("")], rows, header=False)


def _grade(screen: Screen, grade: Grade) -> list[Cell]:
    marks = screen.marks
    sign = {Verdict.PASS: marks.passed, Verdict.FAIL: marks.failed, Verdict.ABSTAIN: marks.abstained}[grade.verdict]
    style = _MARK_STYLES[grade.verdict] if grade.required or grade.verdict is Verdict.PASS else "yellow"
    notes = ["" if grade.required else "advisory", _evidence(grade.evidence)]
    note = screen.text(", ".join(note for note in notes if note), "dim")
    score = "" if grade.score is None else f"{grade.score:.2f}"
    words = screen.block(grade.reason or ("not observed" if grade.verdict is Verdict.ABSTAIN else ""))
    said = Text("  ").join(part for part in (words, note) if part)
    return [Text(sign, style=style), screen.text(grade.name), Text(score, style="dim"), said]


def _evidence(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    return f"event{'s' if len(numbers) > 1 else ''} {', '.join(str(number) for number in numbers)}"


def _outcome(screen: Screen, outcome: Mapping[str, Any] | None) -> None:
    screen.title("Outcome")
    if not outcome:
        screen.line(Text("not observed" if outcome is None else "empty", style="dim"), indent=2)
        return
    rows = [[screen.text(key, "dim"), screen.text(inline(value))] for key, value in outcome.items()]
    screen.rows(left("", ""), rows, header=False)


def _error(screen: Screen, error: AgentError) -> None:
    screen.title("Error")
    if error.traceback:
        screen.line(screen.block(error.traceback.rstrip("\n")[-4 * SHOWN :], "dim"), indent=2)
    screen.line(screen.block(error.summary, "red"), indent=2)


def _leftovers(screen: Screen, record: TrialRecord) -> None:
    if record.leftovers:
        screen.title("Left behind", "the trials after this one did not start where it did")
    for leftover in record.leftovers:
        during = f"during {', '.join(leftover.during)}" if leftover.during else ""
        screen.line(screen.join([leftover.what, during]), indent=2)


def _foot(screen: Screen, record: TrialRecord) -> Text:
    ended = str(record.stop_reason).replace("_", " ")
    steps = "steps unknown" if record.steps is None else times(record.steps, "step")
    unit = " (tool calls)" if record.steps_are_tool_calls else ""
    count, cost = _tokens(record.tokens), _cost(record.cost_usd)
    took = "" if record.latency_ms is None else seconds(record.latency_ms)
    seed = "" if record.seed is None else f"seed {record.seed}"
    style = "dim" if record.stop_reason is StopReason.ANSWERED else "red"
    said = Text(f"{times(record.replayed, 'answer')} replayed" if record.replayed else "", style="yellow")
    return screen.join([Text(ended, style=style), steps + unit, count, cost, took, seed, said])


def _all_attempts(screen: Screen, trial: Trial) -> Text:
    """What the trial took with the attempts that were repeated; the line above is of one alone."""
    together = screen.join([_tokens(trial.tokens), _cost(trial.cost.usd)])
    return Text.assemble((f"all {len(trial.attempts)} attempts: ", "dim"), together)


def _tokens(tokens: Tokens) -> str:
    if tokens.input is None or tokens.output is None:
        return "tokens unknown"
    return f"{tokens.input:,} in, {tokens.output:,} out tokens"


def _cost(usd: float | None) -> str:
    return "cost unknown" if usd is None else money(usd)
