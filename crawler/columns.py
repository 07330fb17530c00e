"""How a column is described: its Spark SQL type and a sentence. Spark reads columns as DDL, executors as Arrow.

So both sides of the one bridge share a single definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """A column: its name, its Spark SQL type, and what it says."""

    name: str
    type: str
    sentence: str


@dataclass(frozen=True)
class Table:
    """A Delta table or a kind of file. `shape` is calendar, run, log or file (beside a WARC file, not a table)."""

    name: str
    shape: str
    sentence: str
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def ddl(columns: tuple[Column, ...]) -> str:
    """The columns as Spark SQL's DDL."""
    return ", ".join(f"`{column.name}` {column.type}" for column in columns)


@cache
def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """The columns as an Arrow schema, with the types Spark gives them."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type.

    >>> arrow_type("array<struct<slot:int,tier:int>>")
    ListType(list<element: struct<slot: int32, tier: int32>>)
    """
    if text in _SIMPLE:
        return _SIMPLE[text]
    kind, _, inner = text.partition("<")
    inner = inner.removesuffix(">")
    if kind == "array":
        return pa.list_(pa.field("element", arrow_type(inner)))
    parts = _split(inner)
    if kind == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    if kind == "struct":
        pairs = (part.split(":", 1) for part in parts)
        return pa.struct([pa.field(name, arrow_type(inner_type)) for name, inner_type in pairs])
    raise ValueError(f"no Arrow type for {text!r}; known: {', '.join(_SIMPLE)}, array<>, map<>, struct<>")


_SIMPLE: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def _split(text: str) -> list[str]:
    """Split at the commas outside of angle brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
