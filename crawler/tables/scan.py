"""Rows of a table's version for those who ask without Spark: whole files are left unread where the log alone says that
nothing in them can match.

Arrow's own scanner is not used to read: its threads may still hold a file written in Python when the interpreter ends,
and that aborts the process (exit code 134, in about one run of five). Here every read ends before the call does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import and_
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet as pq
from deltalake import DeltaTable

from crawler.schemas import Table, arrow_schema
from crawler.storage import Store
from crawler.tables.manifest import file_gone

FILES_AT_ONCE = 8  # a request to S3 is mostly waiting
NUMBER = "_file"
Fact = Mapping[str, Any]
Rows = Any  # a pyarrow.Table; its stubs, and those of its kernels, refuse much of what they take
pc: Any = pyarrow.compute
ds: Any = pyarrow.dataset


def read_matching(
    store: Store, table: Table, delta: DeltaTable, columns: Sequence[str] | None = None, where: Any = None
) -> Rows:
    """The rows of an opened version that match, with these columns (all by default), in no order to rely on.

    `where`, an Arrow expression, leaves files unread by their partition and by the bounds of whole-number columns.
    """
    schema = arrow_schema(table.columns)
    actions: Any = delta.get_add_actions(flatten=True)
    facts = may_match(table, pa.table(actions).to_pylist(), where)
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])

    def read(fact: Fact) -> Rows:
        return _read_file(store, table, fact, (schema, wanted, where))

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        found = list(pool.map(read, facts))
    return pa.concat_tables([wanted.empty_table(), *found])


def may_match(table: Table, facts: Sequence[Fact], where: Any) -> list[Fact]:
    """Those of the files, given by what the log says of each, that can hold a row that matches."""
    if where is None:
        return list(facts)
    schema = arrow_schema(table.columns)
    file_format = ds.ParquetFileFormat()
    nothing = pa.BufferReader(b"")  # Arrow decides by what is said of a file, and does not open it
    said = [
        file_format.make_fragment(nothing, partition_expression=_guarantee(schema, number, fact))
        for number, fact in enumerate(facts)
    ]
    files = ds.FileSystemDataset(said, schema.append(pa.field(NUMBER, pa.int32())), file_format)
    kept = [ds.get_partition_keys(each.partition_expression)[NUMBER] for each in files.get_fragments(filter=where)]
    return [facts[number] for number in sorted(kept)]


def _guarantee(schema: pa.Schema, number: int, fact: Fact) -> Any:
    """What is true of every row of the file, as an expression; its number comes with it."""
    parts = [pc.field(NUMBER) == pa.scalar(number, pa.int32())]
    for field in schema:
        if fact.get(f"partition.{field.name}") is not None:
            parts.append(pc.field(field.name) == pa.scalar(fact[f"partition.{field.name}"], field.type))
        elif pa.types.is_integer(field.type) and fact.get(f"null_count.{field.name}") == 0:
            least, greatest = fact.get(f"min.{field.name}"), fact.get(f"max.{field.name}")
            if least is not None and greatest is not None:
                parts.append(pc.field(field.name) >= pa.scalar(least, field.type))
                parts.append(pc.field(field.name) <= pa.scalar(greatest, field.type))
    return reduce(and_, parts)


def _read_file(store: Store, table: Table, fact: Fact, asked: tuple[pa.Schema, pa.Schema, Any]) -> Rows:
    """The matching rows of one file. Row groups in which the condition's own columns hold no match cost no others."""
    schema, wanted, where = asked
    named = pa.schema([field for field in schema if field.name in str(where)])  # a name too many does no harm
    path = f"tables/{table.name}/{unquote(fact['path'])}"
    try:
        opened = store.open_input(path)
    except FileNotFoundError as error:
        raise file_gone(store, path) from error
    with opened as source:
        file = pq.ParquetFile(source)
        groups = list(range(file.num_row_groups))
        if where is not None:
            groups = [one for one in groups if len(_group(file, one, fact, named).filter(where))]
            both = [field for field in schema if field.name in {*named.names, *wanted.names}]
            found = [_group(file, one, fact, pa.schema(both)).filter(where).select(wanted.names) for one in groups]
        else:
            found = [_group(file, one, fact, wanted) for one in groups]
    return pa.concat_tables([wanted.empty_table(), *found])


def _group(file: pq.ParquetFile, number: int, fact: Fact, schema: pa.Schema) -> Rows:
    """A row group with these columns: of the file, of its partition, or null."""
    stored = [name for name in schema.names if name in file.schema_arrow.names]
    rows: Rows = file.read_row_group(number, columns=stored, use_threads=False)
    values = {name: fact.get(f"partition.{name}") for name in schema.names}
    return pa.table(filled(rows, file.metadata.row_group(number).num_rows, schema, values), schema=schema)


def filled(rows: Any, length: int, schema: pa.Schema, values: Mapping[str, Any]) -> list[Any]:
    """The columns of a schema: those of a batch or table of so many rows, the others with one value each, or null."""
    return [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.repeat(pa.scalar(values.get(field.name), field.type), length)
        for field in schema
    ]
