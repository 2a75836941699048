"""Agents that are LlamaIndex workflows: FunctionAgent, ReActAgent, AgentWorkflow, and a user's own Workflow.

See `agent` for what happens in a trial, `mapping` for `input:` and `output:` of the agent's spec, `approvals` for
questions to a person, `tools` for stand-ins and faults, `recorder` for how it is observed, `joining` for agents hidden
in a function, which loads no framework.
"""
