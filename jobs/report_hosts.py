"""Hosts of a round: what each gave, and whether the gap between two requests kept its promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crawler import schemas
from crawler.records import UNTRIED, Outcome
from crawler.tables.reader import Reader, Rows, Versions, pc

MOST_HOSTS = 1_000
GAP_BINS = 40
CLOCK_TOLERANCE_S = 0.01  # between the clock that stamps the request and the one that waits
_SUMS = ("requests", "successes", "robots_denied", "not_reached", "bytes")


def hosts_of(captures: Rows) -> dict[str, Any]:
    """What each host gave, those with the most requests first, `MOST_HOSTS` of them."""
    outcome = captures["outcome"]
    fetched = (Outcome.SUCCESS, Outcome.NOT_MODIFIED, Outcome.REDIRECT_TEMP, Outcome.REDIRECT_PERM)
    columns: dict[str, Any] = {
        "host": captures["host"],
        "requests": pc.invert(_is_in(outcome, tuple(UNTRIED))).cast(pa.int64()),
        "successes": _is_in(outcome, fetched).cast(pa.int64()),
        "robots_denied": _is_in(outcome, (Outcome.ROBOTS_DENIED, Outcome.ROBOTS_UNREACHABLE)).cast(pa.int64()),
        "not_reached": _is_in(outcome, (Outcome.NOT_REACHED, Outcome.HOST_FAILED)).cast(pa.int64()),
        "bytes": pc.fill_null(captures["content_length"], 0),
    }
    grouped: Rows = pa.table(columns).group_by("host").aggregate([(name, "sum") for name in _SUMS])
    named = grouped.rename_columns({f"{name}_sum": name for name in _SUMS})
    ordered = named.sort_by([("requests", "descending"), ("host", "ascending")])
    return {
        "visited": pc.sum(pc.greater(named["requests"], 0)).as_py() or 0,
        "planned": named.num_rows,
        "pages_of_each": named["successes"].value_counts().to_pylist(),
        "rows": ordered.slice(0, MOST_HOSTS).to_pylist(),
    }


def crawl_delays(reader: Reader, versions: Versions) -> dict[str, float]:
    """Crawl-delay by host as its robots.txt last asked for it; only hosts that ask for one."""
    names = ("host", "crawl_delay_s", "round")
    rows = reader.rows(schemas.HOSTS, versions, names, pc.is_valid(pc.field("crawl_delay_s"))).sort_by("round")
    return dict(zip(rows["host"].to_pylist(), rows["crawl_delay_s"].to_pylist(), strict=True))


def gaps_of(asked: Rows, delays: dict[str, float], delay_s: float) -> dict[str, Any]:
    """Gaps between the starts of two requests to a host, beside the promise: the greater of the setting and the
    host's own crawl-delay. `ratios` counts gap / promise in steps up to 4 (without a promise: seconds up to 4)."""
    ordered = asked.select(["host", "fetch_time"]).sort_by([("host", "ascending"), ("fetch_time", "ascending")])
    hosts: Any = ordered["host"].combine_chunks().dictionary_encode()
    codes = hosts.indices.to_numpy()
    seconds = ordered["fetch_time"].cast(pa.int64()).to_numpy() / 1e6
    is_pair = codes[1:] == codes[:-1]
    gaps = np.diff(seconds)[is_pair]
    of_host = np.array([max(delay_s, delays.get(host, 0.0)) for host in hosts.dictionary.to_pylist()], np.float64)
    promised = of_host[codes[1:][is_pair]] if len(codes) else np.empty(0)
    return _gap_facts(gaps, promised, delay_s)


def _gap_facts(gaps: np.ndarray, promised: np.ndarray, delay_s: float) -> dict[str, Any]:
    ratios = np.divide(gaps, promised, out=gaps.copy(), where=promised > 0)
    counts, edges = np.histogram(np.clip(ratios, 0, 4), bins=GAP_BINS, range=(0.0, 4.0))
    shortest = float(ratios.min()) if len(ratios) else None
    return {
        "promised_s": delay_s,
        "pairs": len(gaps),
        "below_promise": int((gaps < promised - CLOCK_TOLERANCE_S).sum()),
        "shortest_ratio": None if shortest is None else round(shortest, 4),
        "shortest_s": round(float(gaps.min()), 4) if len(gaps) else None,
        "median_s": round(float(np.median(gaps)), 4) if len(gaps) else None,
        "is_ratio": bool((promised > 0).any()),
        "ratios": counts.tolist(),
        "edges": [round(float(edge), 3) for edge in edges],
    }


def _is_in(outcome: Rows, kinds: tuple[Outcome, ...]) -> Rows:
    return pc.is_in(outcome, pa.array([str(kind) for kind in kinds]))
