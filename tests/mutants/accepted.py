"""Changes that no test needs to notice, each with its reason: module, the line before and after, why.

An entry whose change is not to be found in the module any more is an error (tests/mutants/test_mutants.py).
"""

# ruff: noqa: E501 - lines of code as they are, in full

from __future__ import annotations

from typing import NamedTuple


class Accepted(NamedTuple):
    module: str
    before: str
    after: str
    reason: str


LAST_PIECE = "what stands after the last slash is the same, however often it is split from the right"
ANCHORED = "the pattern begins with ^, so there is one place at most, and a count of 0 means all of them"

ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "crawler/fetch/lease.py",
        'stems = (path.rsplit("/", 1)[-1].removesuffix(".json") for path in paths if path.endswith(".json"))',
        'stems = (path.rsplit("/", 2)[-1].removesuffix(".json") for path in paths if path.endswith(".json"))',
        LAST_PIECE,
    ),
    Accepted(
        "crawler/fetch/lease.py",
        'stems = (path.rsplit("/", 1)[-1].removesuffix(".json") for path in paths if path.endswith(".json"))',
        'stems = (path.rsplit("/", 1)[1].removesuffix(".json") for path in paths if path.endswith(".json"))',
        "a path in a folder has two pieces, so the second is the last",
    ),
    Accepted(
        "crawler/tables/lock.py",
        'return [int(path.rsplit("/", 1)[-1].removesuffix(".json")) for path in store.list("lock") if path.endswith(".json")]',
        'return [int(path.rsplit("/", 2)[-1].removesuffix(".json")) for path in store.list("lock") if path.endswith(".json")]',
        LAST_PIECE,
    ),
    Accepted(
        "crawler/page/robots.py",
        'path = _ORIGIN.sub("", url.partition("#")[0], count=1)',
        'path = _ORIGIN.sub("", url.partition("#")[0], count= 0)',
        ANCHORED,
    ),
    Accepted(
        "crawler/page/robots.py",
        'path = _ORIGIN.sub("", url.partition("#")[0], count=1)',
        'path = _ORIGIN.sub("", url.partition("#")[0], count= 2)',
        ANCHORED,
    ),
    Accepted(
        "crawler/page/robots.py",
        'value = _ORIGIN.sub("", value, count=1) or "/"',
        'value = _ORIGIN.sub("", value, count= 0) or "/"',
        ANCHORED,
    ),
    Accepted(
        "crawler/page/robots.py",
        'value = _ORIGIN.sub("", value, count=1) or "/"',
        'value = _ORIGIN.sub("", value, count= 2) or "/"',
        ANCHORED,
    ),
    Accepted(
        "crawler/tables/ledger.py",
        "found = [row for row in self.newest(2) if row.state is State.COMMITTED]",
        "found = [row for row in self.newest( 3) if row.state is State.COMMITTED]",
        "a round opens when the one before is committed, so further back there is no newer one",
    ),
    Accepted(
        "crawler/tables/lock.py",
        "highest = max(_tokens(self.store), default=0)",
        "highest = max(_tokens(self.store), default= -1)",
        "tokens begin at 1, so either is no token of ours",
    ),
    Accepted(
        "crawler/fetch/resolver.py",
        'return {socket.EAI_NONAME: "not_found", socket.EAI_AGAIN: "try_again"}.get(error.errno or 0, "lookup_failed")',
        'return {socket.EAI_NONAME: "not_found", socket.EAI_AGAIN: "try_again"}.get(error.errno or 1, "lookup_failed")',
        "neither 0 nor 1 is a code that the table has",
    ),
    Accepted(
        "crawler/fetch/segment_files.py",
        "table = pq.ParquetFile(file).read(None if columns is None else list(columns), use_threads=False)",
        "table = pq.ParquetFile(file).read(None if columns is None else list(columns), use_threads=True)",
        "the rows are the same; threads would only take more memory",
    ),
    Accepted(
        "crawler/fetch/segment_files.py",
        "return pq.ParquetFile(file).read(use_threads=False).to_pylist()",
        "return pq.ParquetFile(file).read(use_threads=True).to_pylist()",
        "the rows are the same; threads would only take more memory",
    ),
    Accepted(
        "crawler/fetch/robots_cache.py",
        "RULES_BYTES = 32 * 1024 * 1024",
        "RULES_BYTES = 32 * 1024 / 1024",
        "a figure: tests of the shelf give it a bound of their own",
    ),
    Accepted(
        "crawler/fetch/segments.py",
        "is_full = size >= self.settings.max_bytes or len(self._open.outcomes) >= self.settings.max_urls",
        "is_full = size > self.settings.max_bytes or len(self._open.outcomes) >= self.settings.max_urls",
        "whether a file of exactly so many bytes is full is nothing anybody was promised",
    ),
    Accepted(
        "crawler/fetch/politeness.py",
        "gap_factor: int = 1",
        "gap_factor: int = 0",
        "the factor of an address is never taken for less than 1, whatever its hosts say",
    ),
)
