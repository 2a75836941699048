"""Recording of what LangChain runs inside a trial: model calls, tool calls, hand-offs, retrieval.

No adapter of its own: the `langgraph` adapter records with it, and the `function` adapter turns it on (`hidden`) for
agents that hide LangChain behind a plain function.
"""
