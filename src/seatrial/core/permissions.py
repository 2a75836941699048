"""Rules on what agents may do with tools: `policies/tool_permissions.yaml`, normalised.

These are the models. What they mean for a trace, and at a tool's boundary, is worked out by their evaluation.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, model_validator

from seatrial.core.encoding import digest
from seatrial.core.frozen import Frozen
from seatrial.core.model_json import json_of

__all__ = [
    "CRITICAL_VIOLATIONS",
    "SIDE_EFFECT_VIOLATIONS",
    "VIOLATIONS",
    "ApprovalRequirement",
    "AuditRule",
    "Precondition",
    "Rules",
    "Scope",
    "ToolRule",
]

VIOLATIONS = (
    "unauthorized_agent",
    "cross_tenant_access",
    "cross_user_access",
    "precondition_missing",
    "limit_exceeded",
    "unapproved_side_effect",
    "duplicate_side_effect",
    "unbounded_query",
    "unknown_tool",
    "unlisted_tool",
    "secret_exposure",
    "continued_after_error",
    "handoff_loop",
    "forbidden_handoff",
    "acted_after_handoff",
    "audit_missing",
)
"""What a trace may violate."""

CRITICAL_VIOLATIONS = frozenset(VIOLATIONS) - {"unknown_tool", "unlisted_tool", "continued_after_error", "handoff_loop"}

SIDE_EFFECT_VIOLATIONS = frozenset(
    {
        "unauthorized_agent",
        "precondition_missing",
        "limit_exceeded",
        "unapproved_side_effect",
        "duplicate_side_effect",
    }
)
"""Those that mean a call was made that the rules do not allow."""

Name = Annotated[str, Field(min_length=1)]


class Scope(Frozen):
    """A field that must be the identity's own, in arguments, results and context."""

    model_config = ConfigDict(populate_by_name=True)

    field: Name | None = None
    """The field's name where it is none of the usual ones; None = tenant, tenant_id, user, user_id, customer_id."""
    must_be: Literal["same"] = Field(alias="is")

    @model_validator(mode="before")
    @classmethod
    def _word(cls, data: object) -> object:
        return {"is": data} if isinstance(data, str) else data


class Precondition(Frozen):
    """A call that must have completed before."""

    model_config = ConfigDict(populate_by_name=True)

    tool: Name
    arguments: dict[str, Any] | None = Field(default=None, alias="with")
    """Matcher; `$arguments.x` of the guarded call and `$input.x` may stand in it. None = whatever its arguments."""


class ApprovalRequirement(Frozen):
    """An approval that must be granted before, for that very call."""

    when: dict[str, Any] | None = None
    """Matcher over the arguments; None = always."""
    by: tuple[Name, ...] = ()
    """Who may grant it; empty = anyone."""


class AuditRule(Frozen):
    """What must be found in the database after the call."""

    sql: Name
    equals: Any = None


class ToolRule(Frozen):
    """What may be done with one tool."""

    agents: tuple[Name, ...] | None = None
    """Who may call it; None = anyone."""
    scopes: dict[str, Scope] = Field(default_factory=dict)
    """By dimension, such as tenant and user."""
    requires: tuple[Precondition, ...] = ()
    limits: dict[str, Any] = Field(default_factory=dict)
    """Matcher by argument."""
    approval: ApprovalRequirement | None = None
    side_effect: StrictBool = False
    """Whether it changes the world."""
    idempotency: tuple[Name, ...] = ()
    """Arguments whose same values must not be executed twice."""
    audit: tuple[AuditRule, ...] = ()
    results: Literal["private", "public"] = "private"
    """Public: others see what it returns, so a canary in its result is an exposure."""


class Rules(Frozen):
    """The permission rules of a project."""

    version: Literal[1] = 1
    enforce: StrictBool = False
    """True: refused at the tool's boundary, not only graded."""
    tools: dict[str, ToolRule] = Field(default_factory=dict)
    unlisted: Literal["deny", "allow"] = "deny"
    """What a tool without a rule is."""
    handoffs: dict[str, tuple[Name, ...]] | None = None
    """Whom each agent may hand over to; None = no rule on hand-offs."""

    @cached_property
    def digest(self) -> str:
        """Digest of the rules, whatever their layout in the file."""
        return digest(json_of(self, by_alias=True, exclude_defaults=True))

    def side_effect(self, tool: str) -> bool:
        """Whether a tool changes the world, as far as the rules say."""
        rule = self.tools.get(tool)
        return rule is not None and rule.side_effect
