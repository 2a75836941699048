"""Graders of the tools an agent called.

| call state | satisfies a requirement | counts as forbidden call | counts in F1 and precision |
| --- | --- | --- | --- |
| executed | yes | yes | yes |
| failed | only with `state: failed` | yes | yes |
| refused | only with `state: refused` | as attempted, unless the rule says `attempts: allowed` | no |
| unknown_tool, invalid_arguments | no | yes, by name | yes |
| unknown | no | yes | yes |

Malformed arguments match nothing, so they satisfy no requirement and no rule that names arguments, though a rule by
name alone still holds. "By name": a tool that does not exist, or that would not take what it was given, says nothing
about what the arguments mean, so a rule with arguments counts such a call by its name.

Required calls are assigned to observed calls one to one, as many as possible. A call beyond `times`, and under
`exact_tools` (which `required_tools: []` implies) any call neither required nor allowed, is unexpected: it fails the
grade and joins the denominator of its score. A refused attempt at a tool that is required is not unexpected.

`order` says when a chain of `tool_order` holds.
"""

from __future__ import annotations

from seatrial.graders.tools.forbidden import forbidden_approvals, forbidden_tools
from seatrial.graders.tools.order import tool_order
from seatrial.graders.tools.required import required_tools

__all__ = ["forbidden_approvals", "forbidden_tools", "required_tools", "tool_order"]
