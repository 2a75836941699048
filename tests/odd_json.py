"""JSON data as agents may give it: any text, lone surrogates too, and any number."""

from __future__ import annotations

from hypothesis import strategies as st

from seatrial.core.encoding import to_json

__all__ = ["texts", "values"]

texts = st.text(st.characters() | st.sampled_from("\ud800\udfff"), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
).map(to_json)
