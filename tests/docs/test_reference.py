"""The documentation names everything there is, as the code has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import seatrial
from executable_docs import REPOSITORY, pages
from seatrial.cli import COMMANDS
from seatrial.core.case import Risk
from seatrial.core.fixture import FaultSpec
from seatrial.core.language import LANGUAGES
from seatrial.core.matching.comparing import OPERATORS
from seatrial.core.metric import COMMON_GROUPS, METRICS
from seatrial.core.policy import GateSpec
from seatrial.core.trace import CallState, StopReason
from seatrial.core.trial import InvalidReason
from seatrial.errors import ExitCode
from seatrial.graders import _ANSWERS, _CALLS
from seatrial.graders.answer import REQUESTS
from seatrial.graders.controls import ADMISSIONS
from seatrial.loading.from_environment import OPTIONS, SETTINGS
from seatrial.loading.schema import SCHEMAS, schema
from seatrial.loading.short_form import SHORT_KEYS
from seatrial.registry import load_object
from seatrial.verdict.comparison import Change

FILLED_IN = {"absolute", "size", "text"}
"""Keys in schemas that the program fills in, or that stand for a plain text."""


@cache
def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@cache
def words_of(page: str) -> frozenset[str]:
    """Every word that stands in code, inline or in a block."""
    text = text_of(page)
    code = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
    return frozenset(word for part in code for word in re.findall(r"[$\w][\w.\[\]-]*", part.replace("\\|", " ")))


def missing(names: Iterable[str], page: str) -> list[str]:
    return sorted(name for name in names if name not in words_of(page))


def command(name: str) -> click.Command:
    found = load_object(COMMANDS[name][0])
    assert isinstance(found, click.Command)
    return found


def options(of: click.Command) -> Iterator[str]:
    """Options of a command, its own commands' too."""
    for parameter in of.params:
        if isinstance(parameter, click.Option):
            yield from parameter.opts
    if isinstance(of, click.Group):
        for part in of.commands.values():
            yield from options(part)


def keys(part: Any) -> Iterator[str]:
    """Names of all properties in a JSON Schema."""
    if isinstance(part, list):
        for item in part:
            yield from keys(item)
    elif isinstance(part, dict):
        yield from part.get("properties", {})
        for name, item in part.items():
            if name == "properties":
                yield from keys(list(item.values()))
            elif name not in ("default", "enum", "const"):
                yield from keys(item)


# --- commands -------------------------------------------------------------------------------------------------------


PAGES = {
    "compare": "compare",
    "isolate": "isolation",
    **dict.fromkeys(("approve", "baseline", "gate", "metrics", "report"), "releasing"),
}
"""The page that documents a command's options, where it is not `running`."""


def test_every_command_is_documented() -> None:
    named = set(re.findall(r"`seatrial (\w+)", text_of("docs/running.md")))
    assert sorted(set(COMMANDS) - named) == []
    assert sorted(named - set(COMMANDS)) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_of_a_command_is_documented(name: str) -> None:
    words = re.findall(r"(?<![\w-])--?[a-z][\w-]*", text_of(f"docs/{PAGES.get(name, 'running')}.md"))
    everywhere = {"--project", "--json", "--verbose", "-v", "--quiet", "-q"} if name in PAGES else set()
    assert sorted(set(options(command(name))) - set(words) - everywhere) == []


def test_every_option_that_pages_name_exists() -> None:
    known = {option for name in COMMANDS for option in options(command(name))} | {"-h", "--help", "--version"}
    for page in pages():
        lines = re.findall(r"^\$ seatrial .*|`seatrial [^`]*`|`--[a-z-]+[^`]*`", page.read_text("utf-8"), re.MULTILINE)
        named = {option for line in lines for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
        assert sorted(named - known) == [], page.name


def named_commands(text: str) -> Iterator[str]:
    """What stands after `seatrial` in back quotes, and where a shell would run it."""
    for quoted, run in re.findall(r"`seatrial ([^`]+)`|^ *\$ seatrial (.+)$", text, re.MULTILINE):
        yield " ".join((quoted or run).split())


def known_words(line: str) -> tuple[set[str], set[str]]:
    """Options in a command line, and those that its command has; KeyError when there is no such command."""
    name, *words = line.replace("\\|", " ").split()
    if name.startswith("-"):
        return {name}, {"--help", "-h", "--version"}
    given = {found[0] for word in words if (found := re.match(r"--[a-z][a-z-]*", word.strip("[]()")))}
    return given, {*options(command(name)), "--help"}


@pytest.mark.parametrize("file", [*pages(), *sorted((REPOSITORY / "src").rglob("*.py"))], ids=lambda file: file.stem)
def test_every_command_that_a_page_or_a_message_names_exists_with_its_options(file: Path) -> None:
    for line in named_commands(file.read_text("utf-8")):
        assert line.split()[0] in COMMANDS or line.startswith("-"), line
        given, known = known_words(line)
        assert sorted(given - known) == [], line


def test_a_command_or_an_option_that_does_not_exist_is_found() -> None:
    (line,) = named_commands('f"...; `seatrial init` makes a project"')
    assert line not in COMMANDS
    given, known = known_words("run [SELECT...] --seed 1 [--sede 2]")
    assert given - known == {"--sede"}


def test_every_exit_code_is_documented() -> None:
    table = text_of("docs/running.md").partition("## Exit codes")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (\d+) \|", table, re.MULTILINE) == [str(int(code)) for code in ExitCode]


# --- files ----------------------------------------------------------------------------------------------------------


def test_every_key_of_a_case_is_documented() -> None:
    assert missing(set(keys(schema("case"))) - FILLED_IN, "docs/cases.md") == []


def test_every_short_key_is_documented_with_its_long_form() -> None:
    table = text_of("docs/cases.md").partition("## The short form")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([\w.]+)`", table, re.MULTILINE))
    assert rows == {short: ".".join(long) for short, long in SHORT_KEYS.items()}


def test_every_key_of_a_fixture_is_documented() -> None:
    assert missing(keys(schema("fixture")), "docs/fixtures.md") == []
    kinds = get_args(get_args(FaultSpec.model_fields["result"].annotation)[0])
    assert missing(kinds, "docs/fixtures.md") == []


def test_every_setting_is_documented() -> None:
    top = schema("project")["properties"]
    assert missing(top, "docs/running.md") == []
    agent = schema("project")["$defs"]["AgentSpec"]["properties"]
    assert missing(agent, "docs/agents.md") == []
    assert missing({*SETTINGS, *OPTIONS}, "docs/running.md") == []


# --- words ----------------------------------------------------------------------------------------------------------


def test_every_operator_is_documented_and_no_other() -> None:
    table = text_of("docs/cases.md").partition("| operator |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"\$\w+", row.partition("` |")[0])}
    assert named == set(OPERATORS)


def test_every_built_in_grade_is_documented_and_no_other() -> None:
    table = text_of("docs/graders.md").partition("## Built-in grades")[2].partition("\n\nA turn's")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`([\w.]+)`", row.split(" | ")[0])}
    assert named == {*_CALLS, *_ANSWERS}


def test_the_published_lists_are_the_lists_that_are_used() -> None:
    admissions, requests, languages = text_of("docs/graders.md").partition("## Published lists")[2].split("\n**")[1:]
    assert tuple(re.findall(r"`([^`]+)`", " ".join(admissions.split()))) == ADMISSIONS
    assert tuple(re.findall(r"`([^`]+)`", " ".join(requests.split()))) == REQUESTS
    assert tuple(re.findall(r"`([^`]+)`", languages.partition("tells apart")[2])) == LANGUAGES


def test_every_metric_is_documented_with_its_definition() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", text_of("docs/releasing.md"), re.MULTILINE)
    assert rows == [(metric.name, metric.group, metric.definition) for metric in METRICS.values()]
    assert missing(COMMON_GROUPS, "docs/releasing.md") == []
    assert missing(GateSpec.model_fields, "docs/releasing.md") == []


def test_words_of_verdicts_are_documented() -> None:
    assert missing(CallState, "docs/cases.md") == []
    assert missing(get_args(Risk), "docs/cases.md") == []
    assert missing([*StopReason, *InvalidReason], "docs/graders.md") == []
    assert missing(Change, "docs/compare.md") == []


def test_every_public_name_is_documented() -> None:
    named = frozenset[str]().union(*(words_of(page.relative_to(REPOSITORY).as_posix()) for page in pages()))
    public = {name for name in seatrial.__all__ if not name.startswith("_")}
    assert sorted(name for name in public if name not in named and f"seatrial.{name}" not in named) == []


# --- pages ----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_every_page_is_linked_from_the_readme_and_the_index() -> None:
    own = {page.name for page in pages() if page.parent.name == "docs"} - {"index.md"}
    for start in ("README.md", "docs/index.md"):
        linked = {Path(target).name for target in re.findall(r"\]\(([^)#\s]+)\)", text_of(start))}
        assert sorted(own - linked) == [], start


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_promise_nothing_and_name_no_machine(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"(?i)coming soon|\btodo\b|\btbd\b|not yet implemented", text) == []
    assert re.findall(r"(?<![\w.])/(?:work|home|tmp|root|Users)/", text) == []


def test_make_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    for page in pages():
        named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", page.read_text("utf-8")))
        assert named <= targets, page.name


def test_every_schema_is_named() -> None:
    row = next(line for line in text_of("docs/running.md").splitlines() if line.startswith("| `seatrial schema"))
    assert set(re.findall(r"`(\w+)`", row)) == set(SCHEMAS)
