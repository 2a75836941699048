"""Research with LlamaIndex: a researcher who knows the notes, and a calculator, in one AgentWorkflow.

`good` is the build that ships. The others have one realistic fault each:

- `adds_first`: the calculator's prompt no longer says in which order to calculate.
- `from_memory`: the researcher's prompt no longer asks for the notes, and the model says what it believes.
"""

from __future__ import annotations

from research_workflow.workflow import adds_first, build, from_memory, good

__all__ = ["adds_first", "build", "from_memory", "good"]
