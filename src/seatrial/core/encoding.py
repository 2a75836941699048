"""Any value an agent can produce, as strict JSON, once and the same way everywhere.

`to_json` turns a Python value into one made of None, bool, int, float, str, list and dict with text keys. What JSON
lacks becomes a mapping `{"$type": kind, "value": text}`; `from_json` turns the kinds that can be read back into
Python values. Text with lone surrogates stays text: `dumps` writes it as JSON escapes, which read back equal (a pair of
surrogates becomes the one character it stands for, since JSON cannot tell the two apart). Whole numbers of more digits
than Python reads (4,300) are decimals. A mapping whose keys JSON cannot hold apart, or that looks like a mark itself,
is the mark `mapping` with its pairs.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Set
from typing import Any

import orjson
from pydantic import BaseModel

__all__ = [
    "MODELS",
    "SHOWN",
    "digest",
    "dumps",
    "from_json",
    "indented",
    "line_of",
    "pairs_of",
    "parts_of",
    "plain",
    "shortened",
    "to_json",
]

Json = Any
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_DEEPEST = 100
_MOST_BITS = 14_000  # 4,214 digits

MODELS = type(BaseModel)
"""The type of types of models: asking a type for it takes a tenth of the time that `isinstance` of a model does."""

SHOWN = 2 * 1024
"""Characters of a large output that records and reports show."""


def to_json(value: object) -> Json:
    """`value` as JSON data: a copy that later changes to `value` do not touch. Never raises."""
    return _encode(value, ())


def _marked(kind: str, text: str) -> Json:
    return {"$type": kind, "value": _text(text)}


def _encode(value: Any, above: tuple[int, ...]) -> Json:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool or (kind is int and value.bit_length() <= _MOST_BITS):
        return value
    if kind is not dict and kind is not list and isinstance(value, (str, int, float)):
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else _marked("float", _float_text(value))
        if not isinstance(value, enum.Enum):
            return _text(str.__str__(value)) if isinstance(value, str) else _whole(int(value))
    if id(value) in above:
        return _marked("cycle", _type_name(value))
    if len(above) > _DEEPEST:
        return _marked("object", f"{_type_name(value)} (nested deeper than {_DEEPEST})")
    within = (*above, id(value))
    try:
        return _encode_mapping(value, within) if kind is dict else _encode_structure(value, within)
    except Exception as error:  # noqa: BLE001  a hostile __iter__, __repr__ or property must not end a trial
        return _marked("object", f"{_type_name(value)} ({type(error).__name__} while reading it)")


def _text(text: str) -> str:
    if text.isascii() or not _PAIR.search(text):
        return text
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _whole(number: int) -> Json:
    return number if number.bit_length() <= _MOST_BITS else _marked("decimal", str(decimal.Decimal(number)))


def _float_text(value: float) -> str:
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _encode_structure(value: Any, above: tuple[int, ...]) -> Json:
    if isinstance(value, Mapping):
        return _encode_mapping(value, above)
    if isinstance(value, (list, tuple)):
        return [_encode(item, above) for item in value]
    if isinstance(value, Set):
        items = sorted(dumps(_encode(item, above)) for item in value)
        return {"$type": "set", "value": "[" + ",".join(items) + "]"}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _marked("bytes", base64.b64encode(bytes(value)).decode("ascii"))
    if isinstance(value, decimal.Decimal):
        return _marked("decimal", str(value))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return _marked("datetime", value.isoformat())
    if isinstance(value, enum.Enum):
        return _encode(value.value, above)
    return _encode_object(value, above)


def _encode_mapping(value: Mapping[Any, Any], above: tuple[int, ...]) -> Json:
    pairs = value.items() if type(value) is dict else list(value.items())
    encoded = {key if type(key) is str and key.isascii() else _key(key): _encode(item, above) for key, item in pairs}
    looks_marked = len(encoded) == 2 and isinstance(encoded.get("$type"), str) and "value" in encoded
    if looks_marked or len(encoded) < len(pairs):
        return _marked("mapping", dumps([(_key(key), _encode(item, above)) for key, item in pairs]))
    return encoded


def _key(key: Any) -> str:
    if isinstance(key, str) and not isinstance(key, enum.Enum):
        return _text(str.__str__(key))
    encoded = _encode(key, ())
    return encoded if isinstance(encoded, str) else dumps(encoded)


def _encode_object(value: Any, above: tuple[int, ...]) -> Json:
    if isinstance(value, BaseException):
        return _marked("object", _ADDRESS.sub("", f"{_type_name(value)}: {value}"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _marked("dataclass", f"{_type_name(value)} " + dumps(_encode(fields, above)))
    dump = getattr(value, "model_dump", None)  # pydantic, and what imitates it
    if callable(dump) and not isinstance(value, type):
        return _encode(dump(), above)
    item = getattr(value, "item", None)  # numpy scalars
    if callable(item) and getattr(value, "shape", None) == ():
        return _encode(item(), above)
    tolist = getattr(value, "tolist", None)  # numpy arrays
    if callable(tolist):
        return _encode(tolist(), above)
    return _marked("object", _ADDRESS.sub("", f"{_type_name(value)}: {value!r}"))


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def from_json(value: Json) -> Any:
    """The Python value behind `to_json`'s result, for the kinds that can be read back; others stay marked."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$type", "value"} and isinstance(value["$type"], str) and isinstance(value["value"], str):
        return _read(value)
    return {key: from_json(item) for key, item in value.items()}


def _read(marked: dict[str, str]) -> Any:
    reader = _READERS.get(marked["$type"])
    try:
        return marked if reader is None else reader(marked["value"])
    except (ValueError, ArithmeticError, RecursionError):  # not written by `to_json`
        return marked


def pairs_of(text: str) -> list[tuple[str, Json]]:
    """Keys and values, as JSON data, from the text of a mark `mapping`. ValueError for any other text."""
    pairs = json.loads(text)
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise ValueError("a mapping is a list of its pairs")
    return pairs


def _is_pair(item: Json) -> bool:
    return isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)


_READERS: dict[str, Any] = {
    "float": float,
    "decimal": decimal.Decimal,
    "bytes": functools.partial(base64.b64decode, validate=True),
    "mapping": lambda text: {key: from_json(item) for key, item in pairs_of(text)},
}


def dumps(value: Json, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Strict JSON text of JSON data, encodable as UTF-8 whatever the text in it."""
    text = _encoder(indent, sort_keys, ensure_ascii=False).encode(value)
    if text.isascii() or _encodable(text):
        return text
    return _encoder(indent, sort_keys, ensure_ascii=True).encode(value)


def parts_of(value: Any) -> Any:
    """What a line holds of a thing that is made of others. TypeError for what is no JSON data."""
    if isinstance(type(value), MODELS):
        return vars(value)
    if isinstance(value, Set):
        return list(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no JSON data")


def line_of(data: Any, parts: Callable[[Any], Any] = parts_of) -> bytes:
    """JSON data, or a model of it, as the text of a line in UTF-8: what `dumps` gives, several times as fast.

    A figure that is no finite number is unknown: null. `parts` says what is written of models in it.
    """
    try:
        return orjson.dumps(data, default=parts)
    except orjson.JSONEncodeError:  # a whole number of more than 64 bits, lone surrogates
        return dumps(_figures_known(data, parts)).encode()


def plain(data: Any) -> Json:
    """What the line of this holds, read back: JSON data of its own."""
    try:
        return orjson.loads(orjson.dumps(data, default=parts_of))
    except orjson.JSONEncodeError:  # what this encoder does not write, its reader does not read either
        return _figures_known(data, parts_of)


def _figures_known(data: Any, parts: Callable[[Any], Any] | None) -> Json:
    return json.loads(json.dumps(data, default=parts), parse_constant=lambda _: None)


@functools.cache
def _encoder(indent: int | None, sort_keys: bool, *, ensure_ascii: bool) -> json.JSONEncoder:
    """`json.dumps` makes one anew for each text."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.JSONEncoder(
        ensure_ascii=ensure_ascii, allow_nan=False, indent=indent, separators=separators, sort_keys=sort_keys
    )


def indented(value: Any, stand_in: Callable[[Any], Json] | None = None) -> str:
    """The text of a file: two spaces a level, many times as fast as `dumps`. Lone surrogates are escapes in it.

    A figure that is no finite number is null. `stand_in` gives what is written in place of anything that is no JSON
    data.
    """
    try:
        return orjson.dumps(value, default=stand_in, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:  # a whole number of more than 64 bits, lone surrogates, what nothing stands in for
        text = json.dumps(_figures_known(value, stand_in), ensure_ascii=False, indent=2, separators=(",", ": "))
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def digest(value: Json) -> str:
    """`sha256:<64 hex digits>` of JSON data, whatever the order of its keys."""
    text = dumps(value, sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def shortened(text: str, limit: int = SHOWN) -> str:
    """The first `limit` characters and how large the whole is, when `text` is longer."""
    if len(text) <= limit:
        return text
    size = len(text.encode("utf-8", "replace"))
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
    return f"{text[:limit]} ... truncated, {shown}"
