"""Customer support of a small shop: one LangGraph agent with a calculator, a web search and a knowledge base.

`good` is the build that ships. The others have one realistic fault each:

- `mental_arithmetic`: the prompt no longer asks for the calculator, and the model reckons by itself.
- `ignores_the_added_item`: the prompt asks about the basket as it is, not as it would be.
- `looks_up_everything`: the prompt asks to search before every answer, also where nothing is to be found out.
"""

from __future__ import annotations

from support_graph.graph import build, good, ignores_the_added_item, looks_up_everything, mental_arithmetic

__all__ = ["build", "good", "ignores_the_added_item", "looks_up_everything", "mental_arithmetic"]
