"""Plain values as JSON: how the grader and the sandboxed worker talk.

An array travels as the name of its type, its shape and its bytes; nothing is ever
unpickled or evaluated. What comes from the worker is a stranger's: `decode` and
`decode_record` check everything and raise ValueError at whatever does not fit.
"""

from __future__ import annotations

import math
from binascii import a2b_base64, b2a_base64
from typing import Any

import numpy as np
from numpy import ascontiguousarray, ndarray  # kept, should a submission replace them

from course_utils.grading.answer_runner import (
    FAILURES,
    MAX_DEPTH,
    MAX_ITEMS,
    Failure,
    Record,
)

FLOATS, INTEGERS = (
    ("float16", "float32", "float64"),
    ("int8", "int16", "int32", "int64"),
)
DTYPES = (*FLOATS, *INTEGERS, "uint8", "bool")
MAX_TEXT = 400
MAX_PIECES = 4_000_000  # of a text in JSON: a short one can be much to hold


def encode(value: Any) -> Any:
    """Turn a plain value into what JSON can hold."""
    if isinstance(value, ndarray):
        if value.dtype.name not in DTYPES:
            raise ValueError(f"an array of {value.dtype} cannot travel")
        data = b2a_base64(ascontiguousarray(value).tobytes(), newline=False).decode()
        return {"array": value.dtype.name, "shape": list(value.shape), "data": data}
    if isinstance(value, dict):
        return {"dict": [[name, encode(x)] for name, x in value.items()]}
    if isinstance(value, list | tuple):
        return [encode(x) for x in value]
    if type(value) is int and abs(value) >= 2**63:
        return math.inf if value > 0 else -math.inf
    return value


def is_much(text: bytes) -> bool:
    """Tell whether a stranger's JSON has too many lists, dictionaries and items."""
    return sum(map(text.count, (b"[", b"{", b","))) > MAX_PIECES


def decode(message: Any, depth: int = 0) -> Any:
    """Turn what JSON held back into a plain value, trusting nothing."""
    if depth > MAX_DEPTH + 1:
        raise ValueError("nested too deeply")
    if message is None or type(message) in (bool, float):
        return message
    if type(message) is int:
        if abs(message) >= 2**63:
            raise ValueError("not a number of 64 bits")
        return message
    if type(message) is str:
        return plain_text(message)
    if type(message) is list and len(message) <= MAX_ITEMS:
        return [decode(x, depth + 1) for x in message]
    if type(message) is dict and message.keys() == {"dict"}:
        items = message["dict"]
        if type(items) is not list or len(items) > MAX_ITEMS:
            raise ValueError("not a dictionary")
        pairs = [(plain_text(name), decode(x, depth + 1)) for name, x in items]
        return dict(pairs)
    if type(message) is dict and message.keys() == {"array", "shape", "data"}:
        return decode_array(message["array"], message["shape"], message["data"])
    raise ValueError("not a plain value")


def decode_array(dtype: Any, shape: Any, data: Any) -> ndarray:
    """Build an array whose type, shape and length agree."""
    if dtype not in DTYPES or type(shape) is not list or type(data) is not str:
        raise ValueError("not an array")
    if len(shape) > 8 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ValueError("not the shape of an array")
    content = a2b_base64(data, strict_mode=True)
    if math.prod(shape) * np.dtype(dtype).itemsize != len(content):
        raise ValueError("an array's shape and length do not agree")
    return np.frombuffer(content, dtype).reshape(shape).copy()


def plain_text(text: Any) -> str:
    """Keep a stranger's text short, encodable and on one line."""
    if type(text) is not str:
        raise ValueError("not a text")
    text = text[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in text)


def encode_record(record: Record) -> dict[str, Any]:
    """Turn a record into what JSON can hold."""
    failure = record.failure
    return {
        "value": encode(record.value),
        "failure": failure
        and [failure.kind, failure.type, failure.message, failure.line],
        "mutated": list(record.mutated),
        "library": list(record.library),
        "steps": record.steps,
    }


def decode_record(message: Any) -> Record:
    """Read a record that a stranger may have written."""
    fields = {"value", "failure", "mutated", "library", "steps"}
    if type(message) is not dict or message.keys() != fields:
        raise ValueError("not a record")
    failure = None
    if message["failure"] is not None:
        if type(message["failure"]) is not list or len(message["failure"]) != 4:
            raise ValueError("not a failure")
        failure = Failure(*(plain_text(x) for x in message["failure"]))
        if failure.kind not in FAILURES:
            raise ValueError("not a kind of failure")
    names = []
    for field in ("mutated", "library"):
        if type(message[field]) is not list or len(message[field]) > 64:
            raise ValueError("not a list of names")
        names.append(tuple(plain_text(x) for x in message[field]))
    if type(message["steps"]) is not int or not 0 <= message["steps"] < 2**62:
        raise ValueError("not a number of steps")
    value = None if failure else decode(message["value"])
    return Record(value, failure, names[0], names[1], message["steps"])
