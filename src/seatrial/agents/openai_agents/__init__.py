"""Agents of the OpenAI Agents SDK (the package `agents`).

See `agent` for what happens in a trial, `mapping` for `input:` and `output:` of the agent's spec, `recorder` for how it
is observed, `runner` for how runs are, nested and hidden ones too, `tools` for stand-ins and faults, `joining` for
agents hidden in a function, which loads no framework.
"""
