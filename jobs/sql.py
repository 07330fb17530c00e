"""SQL on a lake as it was committed: Spark with Delta's own reader, a view a table. Only queries are answered.

Spark runs a command as soon as it is given one, and its views lead back to the tables. So a statement is parsed first,
by Spark's own parser, and its plan is looked at: every node, those of subqueries and of `WITH` too, must be one of a
query. Commands, writes, scripts, programs and what is not known end it before anything ran: a new kind of statement is
refused, not let through. Two more ways out of the lake are closed: files as tables, by a setting of the session, and
functions that call Java by name, which are looked for after analysis, since a name can be computed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crawler import schemas
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.reader import Reader
from jobs.driver import find_java_home, require_jars
from jobs.exits import BAD_USE, NOT_FOUND, Stop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AS_JSON = """to_json(struct(*), map('timeZone', 'UTC', 'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss'Z'"))"""
FAULTS_OF_STATEMENTS = ("22", "42", "P0")  # SQLSTATE (ISO 9075): data exception; syntax or unknown name; raise_error
QUERIES = frozenset(
    "Aggregate AsOfJoin DataFrameDropColumns Deduplicate Distinct Except Expand Filter Generate GlobalLimit Intersect "
    "Join LateralJoin LocalLimit LocalRelation NearestByJoin Offset OneRowRelation PipeOperator Pivot Project Range "
    "RebalancePartitions RelationTimeTravel Repartition RepartitionByExpression Sample Sort SubqueryAlias Tail "
    "Transpose Union UnionLoop Unpivot UnresolvedHaving UnresolvedHint UnresolvedInlineTable UnresolvedRelation "
    "UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction UnresolvedTranspose "
    "UnresolvedWith Window WithWindowDefinition".split()
)
LOOKING = frozenset(
    "CurrentNamespace$ DescribeColumn DescribeQueryCommand DescribeRelation ExplainCommand ShowColumns ShowTables "
    "UnresolvedNamespace UnresolvedTableOrView".split()
)
"""Nodes of the commands that tell of the tables and change nothing."""
CALLS_JAVA = "CallMethodViaReflection"


@contextmanager
def open_views(
    store: Store, settings: Settings, number: int | None = None, statement: str = ""
) -> Iterator[SparkSession]:
    """A session in which every table is a view of its name, as a round committed it, the newest by default.

    Raises Stop where no such round is committed. A notebook may use it as well: it takes no lock and writes nothing.
    For a `statement` that names tables, these alone are opened: 0.2 s each on a local disk.
    """
    reader = Reader.open(store)
    row = reader.committed(number)
    if row is None:
        raise Stop(NOT_FOUND, f"{store.uri}: round {number or 1} is not committed; `orbweaver status` shows what is")
    tables = named_in(statement)
    reader.require_whole(tables, row["versions"])
    find_java_home()
    require_jars()
    from crawler.spark import open_session

    spark = open_session(settings, "orbweaver-sql", with_delta=True)
    try:
        for table in tables:
            rows = spark.read.format("delta")
            if table.name in row["versions"]:
                rows = rows.option("versionAsOf", row["versions"][table.name])
            view_of(table, rows.load(store.uri_of(f"tables/{table.name}"))).createOrReplaceTempView(table.name)
        yield spark
    finally:
        spark.stop()


def view_of(table: schemas.Table, rows: DataFrame) -> DataFrame:
    """The table with all columns of this version, null where the version that is read lacks one. It is a query on the
    table, not the table: Delta would write through a view of the table itself."""
    from pyspark.sql import functions as F

    held = set(rows.columns)
    columns = [F.col(c.name) if c.name in held else F.lit(None).cast(c.type).alias(c.name) for c in table.columns]
    return rows.select(*columns).where(F.lit(True))  # a filter that is dropped only after writes were refused


def query(spark: SparkSession, statement: str, most: int) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns and the first rows of the answer, as JSON knows values.

    Raises Stop for what is no query, and with Spark's own words for a statement that has no answer.
    """
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True  # it would say the same again, as JSON
    try:
        refuse_commands(spark, statement)
        spark.conf.set("spark.sql.runSQLOnFiles", "false")
        found = spark.sql(statement)
        refuse_java(found)
        rows = [json.loads(row[0]) for row in found.limit(most).selectExpr(AS_JSON).collect()]
    except PySparkException as error:
        if str(error.getSqlState())[:2] not in FAULTS_OF_STATEMENTS:
            raise
        tables = ", ".join(table.name for table in schemas.TABLES)
        said = str(error).strip().splitlines()[0]
        raise Stop(BAD_USE, f"{said}\nTables: {tables}; one statement at a time") from error
    return found.columns, [[row.get(name) for name in found.columns] for row in rows]


def refuse_commands(spark: SparkSession, statement: str) -> None:
    """Raise Stop for a statement that is anything else than one query; nothing of it has run then."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    strange = [name for node in _nodes(parser.parsePlan(statement)) if (name := _name(node)) not in QUERIES | LOOKING]
    if strange:
        raise Stop(
            BAD_USE,
            f"only queries are answered, and this is none ({strange[0]}). The tables are written by rounds and by "
            "`orbweaver maintain`, `repair` and `restore` alone; to change rows, copy them into tables of your own",
        )


def refuse_java(found: DataFrame) -> None:
    """Raise Stop for a query that calls methods of Java by their names: what they do is not a query's business."""
    for node in _nodes(found._jdf.queryExecution().analyzed()):
        if any(_name(one) == CALLS_JAVA for expression in _each(node.expressions()) for one in _tree(expression)):
            raise Stop(BAD_USE, "reflect, java_method and try_reflect call Java by name, and are refused here")


def _nodes(plan: Any) -> Iterator[Any]:
    """A plan, its inputs, what it names in `WITH`, the queries in its expressions, and the plan that it explains."""
    yield plan
    explained = [plan.logicalPlan()] if _name(plan) == "ExplainCommand" else []
    for below in (plan.children(), plan.innerChildren(), plan.subqueries()):
        explained += _each(below)
    for one in explained:
        yield from _nodes(one)


def _tree(expression: Any) -> Iterator[Any]:
    yield expression
    for one in _each(expression.children()):
        yield from _tree(one)


def _each(sequence: Any) -> list[Any]:
    """What a sequence of Scala holds."""
    return [sequence.apply(at) for at in range(sequence.size())]


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def named_in(statement: str) -> list[schemas.Table]:
    """The tables whose names are words of a statement, wherever they stand; all where there is none."""
    words = set(re.findall(r"\w+", statement.lower()))
    return [table for table in schemas.TABLES if table.name in words] or list(schemas.TABLES)
