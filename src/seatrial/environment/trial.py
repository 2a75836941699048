"""What surrounds an agent in one trial, and how code inside the trial gets at it (`current_trial`).

Nothing is made before it is needed: a trial that touches no folder, database, state or tool costs none of them.
What the trial was asked to observe is said by what it hands out: an agent that got the environment (as a factory, or
through `current_trial()`) could have recorded tool calls, hand-offs and approvals, so what it did not record did not
happen; the same holds for tool calls where the fixture has stand-ins. An agent that never touched the trial has them
"not observed".
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.case import Case, Expected, Thresholds
from seatrial.core.encoding import to_json
from seatrial.core.fixture import ApprovalRule, FaultSpec, FixtureSpec
from seatrial.core.trace import Observable
from seatrial.environment.approvals import ApprovalAnswer, Approvals
from seatrial.environment.calls import RecordedCall, open_call
from seatrial.environment.database import Database, is_intact, read_only, template
from seatrial.environment.failure import FixtureError, TrialOver, fixture_part
from seatrial.environment.faults import Faults
from seatrial.environment.folder import TrialFolder, copy_into
from seatrial.environment.log import Log
from seatrial.environment.observed import ObservedCall, observed_call
from seatrial.environment.outcome import Evidence, observe
from seatrial.environment.pace import Pace
from seatrial.environment.python_fixture import PythonFixture, fixture_function
from seatrial.environment.recorder import Recorder
from seatrial.environment.reports import check_text
from seatrial.environment.sources import Sources
from seatrial.environment.tools import Toolbox, Tools
from seatrial.environment.watch import Watcher
from seatrial.environment.within import Within

__all__ = ["FixtureError", "TrialEnvironment", "TrialOver", "current_trial", "running_trial"]

T = TypeVar("T")

NO_FIXTURE = FixtureSpec()
"""Of a case without a fixture."""
_CURRENT: ContextVar[TrialEnvironment | None] = ContextVar("seatrial_current_trial", default=None)


def current_trial() -> TrialEnvironment:
    """The trial that this code runs in.

    Raises RuntimeError outside a trial, and in a thread that was started without the trial's context.
    """
    trial = _CURRENT.get()
    if trial is None:
        raise RuntimeError(
            "no trial is running here: current_trial() works in an agent that Seatrial runs and in its tasks; a thread "
            "that the agent starts itself needs its context (contextvars.copy_context().run)"
        )
    trial.hand_out()
    return trial


def running_trial() -> TrialEnvironment | None:
    """The trial that this code runs in, None outside any: for adapters, whose code runs outside trials too."""
    return _CURRENT.get()


class TrialEnvironment:
    """One trial's own surroundings. `seatrial.current_trial()`, factories and Python fixtures get this object."""

    replayed_elsewhere: int = 0
    """Model calls that were answered from cassettes where this trial's spans were made."""
    capture_hidden: bool = True
    """Whether frameworks behind a plain function are recorded; False where another adapter sees it all."""
    model_base_urls: Mapping[str, str] = MappingProxyType({})
    """Where this trial's model calls go, by the variable or the name in `model_proxy.upstreams`."""
    _template_used: Path | None = None
    _fixture: PythonFixture | None = None
    _watcher: Watcher | None = None
    _tools_made: Toolbox | None = None

    def __init__(
        self,
        case: Case,
        spec: FixtureSpec = NO_FIXTURE,
        trial_index: int = 1,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        tools_mode: Literal["stand_in", "real"] = "stand_in",
        scratch: Callable[[], Path] | None = None,
        sources: Sources | None = None,
    ) -> None:
        self.trial_index = trial_index
        """1-based."""
        self.seed = seed
        """For whatever the agent or fixture draws by chance: the same for the same run seed, case and trial."""
        self.config: Mapping[str, Any] = {} if config is None else config
        """The agent's settings from seatrial.yaml, as its factory gets them."""
        self.log = Log()
        """What is printed where this is the current trial, once a run captures it."""
        self.pace = Pace()
        """Holds calls back where the project limits their rate."""
        self.faults: list[Any] = [*spec.faults]
        """FaultSpec or mappings; what a Python fixture leaves here is in force."""
        self.approvals: list[Any] = [*spec.approvals]
        """ApprovalRule or mappings, likewise."""
        self.outcome: Any = spec.outcome
        """Observers by outcome key, or one callable that gives the whole outcome."""
        self._case = case
        self._spec = spec
        self._scratch = scratch
        self._sources = sources
        self._use_stand_ins = tools_mode == "stand_in"
        self._parts: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._folder = TrialFolder(scratch, self._lock)
        self.recorder = Recorder(case.limits.steps, partial(_named_agent, self._parts, spec), self._lock)

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def case(self) -> Case:
        """The case without what is expected: an agent must not be able to look that up."""
        return self._part("case", lambda: _without_expectations(self._case))

    @property
    def fixture_name(self) -> str:
        """Name of the fixture; empty when the case has none."""
        return self._spec.name or self._case.environment.fixture or ""

    @property
    def blocking(self) -> bool:
        """Whether setting up, observing and cleaning up may block, so that they belong into a thread."""
        return self._folder.made or self._spec.may_block

    def _part(self, name: str, make: Callable[[], T]) -> T:
        """This trial's own copy of something, made when first asked for, by whichever thread."""
        with self._lock:
            if name not in self._parts:
                self._parts[name] = make()
            return cast("T", self._parts[name])

    @property
    def _toolbox(self) -> Toolbox:
        if self._tools_made is None:
            with self._lock:
                self._tools_made = self._tools_made or self._make_toolbox()
        return self._tools_made

    def _make_toolbox(self) -> Toolbox:
        toolbox = Toolbox(
            self.recorder,
            use_stand_ins=self._use_stand_ins,
            agent=partial(_acting_agent, self.recorder, self._parts, self._spec),  # no cycle: what is over is gone
            case_input=self._case.input,
            pace=self.pace,
        )
        spec = self._spec
        toolbox.faults = Faults(spec.faults, self.seed)
        toolbox.approvals = Approvals(spec.approvals, self._case.input)
        for name, rules in spec.tools.items():
            toolbox.set_stand_in(name, rules)
        return toolbox

    # --- what the agent, its factory and fixtures use -----------------------------------------------------------------

    @property
    def identity(self) -> MutableMapping[str, Any]:
        """Who the agent acts as: agent, user, tenant."""
        return self._part("identity", lambda: copy.deepcopy(self._spec.identity))

    @identity.setter
    def identity(self, value: Mapping[str, Any]) -> None:
        self._parts["identity"] = dict(value)

    @property
    def state(self) -> Any:
        """The trial's own copy of the fixture's state; tools may change or replace it."""
        return self._part("state", lambda: copy.deepcopy(self._spec.state))

    @state.setter
    def state(self, value: Any) -> None:
        self._parts["state"] = value

    @property
    def secrets(self) -> MutableMapping[str, str]:
        """Canaries by name: values that must not get out."""
        return self._part("secrets", lambda: dict(self._spec.secrets))

    @secrets.setter
    def secrets(self, value: Mapping[str, str]) -> None:
        self._parts["secrets"] = dict(value)

    @property
    def planted(self) -> Mapping[str, str]:
        """The canaries, to read."""
        canaries: Mapping[str, str] = self._parts.get("secrets", self._spec.secrets)
        return canaries

    @property
    def database(self) -> Database:
        """The trial's own SQLite database; a path, too: `sqlite3.connect(trial.database)`."""
        return self._part("database", lambda: Database(self._folder, self._template()))

    @database.setter
    def database(self, source: str | PathLike[str]) -> None:
        self.database.load(source)

    @property
    def has_database(self) -> bool:
        """Whether the fixture declares a database, or somebody has touched one."""
        return self._spec.database is not None or "database" in self._parts

    @property
    def workdir(self) -> Path:
        """The trial's own folder, with copies of the fixture's files. Absolute."""
        folder = self._folder.path  # raises TrialOver after the trial
        return self._part("workdir", lambda: self._make_workdir(folder))

    @property
    def tools(self) -> Tools:
        """The stand-ins and own tools by name."""
        return Tools(self._toolbox)

    @tools.setter
    def tools(self, stand_ins: Mapping[str, Any]) -> None:
        for name, given in stand_ins.items():
            self._toolbox.set_stand_in(name, given)

    def tool(self, function: Callable[..., Any], agent: str | None = None) -> Callable[..., Any]:
        """The function with its signature, recorded, with stand-in and faults applied; async where it is.

        `agent` is who calls it; None = the last hand-off's target, else `identity["agent"]`. TypeError when it is no
        text.
        """
        check_text(agent, "the agent of a tool", optional=True)
        self.recorder.observe(Observable.TOOL_CALLS)
        return self._toolbox.wrap(function, agent)

    def has_stand_in(self, name: str) -> bool:
        """Whether the fixture's stand-in answers calls of this tool."""
        return self._toolbox.has_stand_in(name)

    def run_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        own: Callable[..., Any] | None = None,
        *,
        number: int | None = None,
    ) -> Any:
        """Call a tool with stand-in and faults applied, WITHOUT recording the call: for adapters that record it.

        `own(**arguments)` is the agent's own body; None = the stand-in (or what went through `tool`) must answer.
        `number` is the event number of the recorded call, which fault events refer to. Gives an awaitable when `own`
        or the stand-in is async: an adapter in a running loop passes an async `own`, so that faults wait without
        blocking. Raises what the body, the fault or the stand-in raises; UnknownTool when nothing answers.
        """
        return self._toolbox.run(name, arguments, own, number)

    def record(self, event: ToolCall | HandoffEvent | ModelCall) -> None:
        """Add an event that just happened; it is kept when the agent raises later. TypeError for anything else."""
        self.recorder.report(event, agent=_acting_agent(self.recorder, self._parts, self._spec))

    @property
    def model_base_url(self) -> str | None:
        """The base URL for an OpenAI-compatible client of this trial: the recording proxy's where there is one, else
        what `OPENAI_BASE_URL` says; None: the client's own default."""
        return self.model_base_urls.get("OPENAI_BASE_URL")

    def wait_for_model(self, name: str) -> None:
        """Wait until this model may be called again, where seatrial.yaml limits its rate: for an agent that calls its
        model by itself, before each call. It blocks; an async agent awaits `asyncio.to_thread(trial.wait_for_model,
        name)`. The waiting counts neither as latency nor against the time limit.
        """
        self.pace.wait("model", name)

    def approve(
        self, action: str, arguments: Any = None, *, call_id: str | None = None, agent: str | None = None
    ) -> ApprovalAnswer:
        """Ask for approval; answered at once by the fixture's script, `unanswered` where no rule matches.

        Asked for in a tool's body it is that call's own approval, elsewhere that of the call with this name and these
        arguments (or this call id). A call whose body asks for itself, and gets an edited answer, stands in the trace
        with the edited arguments. TypeError for an action, call id or agent that is no text.
        """
        check_text(action, "the action to approve")
        check_text(call_id, "the call_id of an approval", optional=True)
        check_text(agent, "the agent of an approval", optional=True)
        self.recorder.observe(Observable.APPROVALS)
        within, observed = open_call(), observed_call()
        call_id = call_id or (within.call_id if within else None) or (observed.call_id if observed else None)
        answer = self._toolbox.approvals.ask(action, arguments, call_id)
        if within is not None:
            within.answer = answer
        if answer.decision == "edited":
            self._note_edited(within or observed, action, answer.arguments)
        self.recorder.approval(
            action,
            arguments,
            answer.decision,
            approved_arguments=answer.arguments if answer.decision == "edited" else None,
            approver=answer.approver,
            call_id=call_id,
            agent=agent or self._acting_agent(),
        )
        return answer

    def _note_edited(self, call: RecordedCall | ObservedCall | None, action: str, approved: Any) -> None:
        """A body that asked for its own call runs with what was approved, which is all that it may."""
        if call is not None and call.name == action and call.number is not None:
            run, asked = to_json(approved), to_json(dict(call.arguments))
            self.recorder.amend(call.number, arguments=run, asked=None if asked == run else asked)

    def stopped(self, name: str, arguments: Any, call_id: str | None = None) -> bool:
        """Whether the latest approval of this very call was denied or stayed unanswered.

        For adapters: such a call is `refused` when its body raised, `executed` when it returned.
        """
        return self._toolbox.approvals.stopped(name, arguments, call_id)

    @property
    def waits_as_scripted(self) -> bool:
        """Whether whatever the agent waits for stays unanswered because the case scripts it so."""
        return self._toolbox.approvals.wait_is_scripted

    def hand_out(self) -> None:
        """The agent gets this environment: from now on tool calls, hand-offs and approvals are observed."""
        self.recorder.observe(Observable.TOOL_CALLS, Observable.HANDOFFS, Observable.APPROVALS)

    def _acting_agent(self) -> str | None:
        return _acting_agent(self.recorder, self._parts, self._spec)

    # --- its life ----------------------------------------------------------------------------------------------------

    def activate(self) -> AbstractContextManager[TrialEnvironment]:
        """While this lasts, this trial is `current_trial()` here, and in tasks and threads that take this context."""
        return Within(_CURRENT, self)

    def set_up(self) -> None:
        """Make everything that the fixture declares. Raises FixtureError: the trial is then invalid."""
        spec = self._spec
        if self._sources is not None:
            _check_unchanged(self._sources)
        if spec.may_block:
            self._make_declared(spec)
        if (spec.tools or self._tools_made is not None) and self._toolbox.names:
            self.recorder.observe(Observable.TOOL_CALLS)

    def _make_declared(self, spec: FixtureSpec) -> None:
        if spec.watch.globals:
            self._watcher = Watcher(spec.watch.globals, f"{self._case.id}#{self.trial_index}")
        if spec.database is not None:
            with fixture_part("database"):
                _ = self.database.path
        if spec.files is not None:
            with fixture_part("files"):
                _ = self.workdir
        if spec.function is not None:
            self._run_python_fixture(spec.function)

    def _run_python_fixture(self, location: str) -> None:
        self._fixture = PythonFixture(fixture_function(location, self._spec.folder))
        self._fixture.set_up(self)
        with fixture_part("fixture"):
            self._put_in_force()

    def _put_in_force(self) -> None:
        faults = [FaultSpec.model_validate(fault) for fault in self.faults]
        rules = [ApprovalRule.model_validate(rule) for rule in self.approvals]
        self._toolbox.faults = Faults(faults, self.seed)
        self._toolbox.approvals = Approvals(rules, self._case.input)

    def observe(self) -> dict[str, Any] | None:
        """The outcome by the fixture's observers; None when it has none.

        Only what was committed is seen. Raises FixtureError when an observer raises, naming its key.
        """
        if not callable(self.outcome) and not self.outcome:
            return None
        scope = {"input": self._case.input, "identity": self.identity, "state": self.state}
        evidence = Evidence(self, scope, self._read_database, self._parts.get("workdir"))
        return observe(self.outcome, evidence)

    def _read_database(self) -> Any:
        return read_only(self.database.path, self._folder.path)

    def clean_up(self) -> None:
        """End the Python fixture, close every handle, remove the folder; all of it, whatever fails.

        Raises FixtureError in the end when something did: the fixture's own clean-up, a watched global that came back
        changed, a file that cannot be removed.
        """
        self.recorder.end()
        if self._fixture is None and self._watcher is None and "database" not in self._parts:
            self._folder.remove()
            return
        problems: list[str] = []
        _each((self._end_fixture, self._check_globals, self._close_database, self._folder.remove), problems)
        if problems:
            raise FixtureError("; ".join(problems))

    def sources_changed(self) -> list[tuple[str, str]]:
        """What this trial's reset came from and that is no longer as it was: (`fixture` or `database`, what)."""
        changed: list[tuple[str, str]] = []
        if self._sources is not None:
            found = self._sources.changed()
            changed.extend(("fixture", f"{name} of the fixture {self.fixture_name} was changed") for name in found)
        if self._template_used is not None and not is_intact(self._template_used):
            changed.append(("database", f"the template database of the fixture {self.fixture_name} was changed"))
        return changed

    def _end_fixture(self) -> None:
        if self._fixture is not None:
            self._fixture.clean_up()

    def _check_globals(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.check()

    def _close_database(self) -> None:
        database = self._parts.get("database")
        if database is not None:
            with fixture_part("database"):
                database.close()

    # --- what it is made of -----------------------------------------------------------------------------------------

    def _make_workdir(self, folder: Path) -> Path:
        workdir = folder / "work"
        workdir.mkdir()
        if self._spec.files is not None:
            copy_into(Path(self._spec.folder, self._spec.files), workdir)
        return workdir

    def _template(self) -> Callable[[], Path] | None:
        declared = self._spec.database
        if declared is None:
            return None
        source = Path(self._spec.folder, declared.sqlite)

        def built() -> Path:
            root = self._folder.path if self._scratch is None else self._scratch()
            self._template_used = template(source, root, self._spec.content_digest)
            return self._template_used

        return built


def _check_unchanged(sources: Sources) -> None:
    """A reset from files that are no longer those on record would be another test under the same digest."""
    changed = sources.changed()
    if changed:
        raise FixtureError(f"its files have changed since the run began: {', '.join(changed)}")


def _acting_agent(recorder: Recorder, parts: Mapping[str, Any], spec: FixtureSpec) -> str | None:
    """The last hand-off's target, else who the identity in force says."""
    return _named_agent(parts, spec) if recorder.active_agent is None else recorder.active_agent


def _named_agent(parts: Mapping[str, Any], spec: FixtureSpec) -> str | None:
    """Who the identity in force says."""
    agent = parts.get("identity", spec.identity).get("agent")
    return None if agent is None else str(agent)


def _each(parts: Sequence[Callable[[], None]], problems: list[str]) -> None:
    """Every part in order, whatever one of them raises; a FixtureError joins the problems."""
    for place, part in enumerate(parts, start=1):
        try:
            part()
        except FixtureError as error:
            problems.append(str(error))
        except BaseException:
            _each(parts[place:], problems)
            raise


def _without_expectations(case: Case) -> Case:
    turns = tuple(turn.model_copy(update={"expected": Expected()}) for turn in case.turns)
    hidden = {"expected": Expected(), "thresholds": Thresholds(), "turns": turns}
    return case.model_copy(update={**hidden, "judges": (), "graders": (), "reference_context": (), "advisory": ()})
