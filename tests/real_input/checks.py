"""What must hold after a crawl of the corpus, checked with other people's tools and the server's log."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
from deltalake import DeltaTable
from fastwarc.warc import ArchiveIterator

from tests.real_input.oracle import Expected
from tests.real_input.origin import Request

ROBOTS = "/robots.txt"
NAMED = 5  # examples of what is wrong


@dataclass(frozen=True)
class Check:
    """A promise, whether it held, and what was seen."""

    promise: str
    is_kept: bool
    seen: str


def asked_once(requests: Sequence[Request], expected: Expected) -> list[Check]:
    """Every URL that links and robots allow, exactly once, and nothing else."""
    counts = Counter((request.host, request.uri) for request in requests if request.uri != ROBOTS)
    missing, others = expected.asked.keys() - counts.keys(), counts.keys() - expected.asked.keys()
    repeated = {url for url, count in counts.items() if count > 1}
    denied = counts.keys() & expected.denied
    return [
        Check("every allowed URL is asked", not missing, f"{len(counts):,} asked, {_some(missing, 'missing')}"),
        Check("none twice", not repeated, _some(repeated, "repeated")),
        Check("nothing else", not others, _some(others, "not expected")),
        Check("nothing that robots.txt denies", not denied, f"{len(expected.denied)} denied, {_some(denied, 'asked')}"),
        _robots_first(requests),
    ]


def gaps_kept(requests: Sequence[Request], delay_s: float, tolerance_s: float = 0.01) -> Check:
    """Between the starts of two requests to a host lies the delay at the least, by the server's clock.

    A server that was kept waiting for its core notes one request late and the next in time; then two gaps together are
    still two delays, and the short one is counted but is no breach.
    """
    gaps: list[float] = []
    breaches = 0
    for host in {request.host for request in requests}:
        starts = sorted(request.at - request.took_s for request in requests if request.host == host)
        of_host = [later - earlier for earlier, later in pairwise(starts)]
        late = [delay_s, *of_host]
        breaches += sum(
            gap < delay_s - tolerance_s and before + gap < 2 * delay_s - tolerance_s
            for before, gap in zip(late, of_host, strict=False)
        )
        gaps += of_host
    short = sum(gap < delay_s - tolerance_s for gap in gaps)
    seen = (
        f"{len(gaps):,} gaps, least {min(gaps, default=0.0):.3f} s, {short} short after a late one, {breaches} breaches"
    )
    return Check(f"gaps of {delay_s:g} s", breaches == 0, seen)


def asked_conditionally(requests: Sequence[Request], expected: Expected, revisits: int) -> list[Check]:
    """A second visit sends validators for every page held and stores revisits."""
    pages = [request for request in requests if (request.host, request.uri) in expected.pages]
    plain = {(request.host, request.uri) for request in pages if not request.is_conditional}
    unchanged = sum(request.status == 304 for request in pages)
    twice = [url for url, count in Counter((r.host, r.uri) for r in pages).items() if count > 1]
    absent = expected.pages - {(request.host, request.uri) for request in pages}
    return [
        Check("every page is asked again", not absent, _some(absent, "missing")),
        Check("none twice", not twice, _some(twice, "repeated")),
        Check("with validators", not plain, f"{unchanged:,} answers 304, {_some(plain, 'without')}"),
        Check("a revisit for every 304", revisits == unchanged > 0, f"{revisits:,} revisit records"),
    ]


def warcs_accepted(lake: Path) -> list[Check]:
    """`gzip -t`, `warcio check` and FastWARC accept every WARC file."""
    files = sorted(lake.rglob("*.warc.gz"))
    warcio = Path(sys.executable).with_name("warcio")
    tools = {"gzip -t": ["gzip", "-t"], "warcio check": [str(warcio), "check"]}
    checks = []
    for name, command in tools.items():
        bad = [file.name for file in files if not _accepts([*command, str(file)])]
        checks.append(Check(f"{name} accepts", bool(files) and not bad, f"{len(files)} files, {_some(bad, 'refused')}"))
    bad_records = [f"{file.name}@{offset}" for file in files for offset in _bad_records(file)]
    checks.append(Check("FastWARC accepts", not bad_records, f"{_some(bad_records, 'bad digests')}"))
    return checks


def count_records(lake: Path) -> Counter[str]:
    """Records of all WARC files by type."""
    counts: Counter[str] = Counter()
    for file in lake.rglob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, parse_http=False):
                counts[record.headers.get("WARC-Type") or ""] += 1
    return counts


def tables_open(lake: Path) -> Check:
    """deltalake and DuckDB read every table without Spark, and agree on the number of rows."""
    rows = {}
    for folder in sorted((lake / "tables").iterdir()):
        dataset = DeltaTable(str(folder)).to_pyarrow_dataset()
        counted = duckdb.connect().execute("SELECT count(*) FROM dataset").fetchone()
        if counted is None or counted[0] != dataset.count_rows():
            return Check("tables open in deltalake and DuckDB", False, folder.name)
        rows[folder.name] = counted[0]
    return Check("tables open in deltalake and DuckDB", bool(rows), ", ".join(f"{n} {c:,}" for n, c in rows.items()))


def _robots_first(requests: Sequence[Request]) -> Check:
    first: dict[str, str] = {}
    for request in requests:
        first.setdefault(request.host, request.uri)
    early = [host for host, uri in first.items() if uri != ROBOTS]
    asked = Counter(request.host for request in requests if request.uri == ROBOTS)
    return Check("robots.txt first, and once", not early and set(asked.values()) == {1}, str(dict(asked)))


def _accepts(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _bad_records(file: Path) -> list[int]:
    """Offsets of records whose digests do not match their bytes."""
    with file.open("rb") as stream:
        return [
            record.stream_pos
            for record in ArchiveIterator(stream, parse_http=False)
            if "WARC-Block-Digest" in record.headers and not record.verify_block_digest()
        ]


def _some(values: Iterable[object], word: str) -> str:
    listed = sorted(map(str, values))
    return f"{len(listed)} {word}" + (f": {', '.join(listed[:NAMED])}" if listed else "")
