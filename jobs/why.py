"""Why a URL is, or is not, in the crawl: everything the tables know of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crawler import schemas
from crawler.page.filters import Scope, UrlFilters
from crawler.page.url import Refusal, Url, UrlPolicy, host_key, host_port, registered_domain
from crawler.records import RobotsCopy
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.manifest import read_manifest, require_same_keys
from crawler.tables.reader import Condition, Reader, Row, Versions, of_key, of_round, pc
from jobs.show import plain
from jobs.stored import captures_of
from jobs.words import instant

PLAN_COLUMNS = ("round", "kind", "reason", "rows", "position", "tier", "partition", "url_key", "host")


@dataclass(frozen=True)
class Asked:
    """The tables at the newest committed versions, and the URL that is asked for."""

    reader: Reader
    versions: Versions
    url: Url
    now: float

    def rows(self, table: schemas.Table, where: Condition, columns: tuple[str, ...] | None = None) -> list[Row]:
        found: list[Row] = self.reader.rows(table, self.versions, columns, where).to_pylist(maps_as_pydicts="strict")
        return found


def why(store: Store, settings: Settings, raw: str, now: float) -> dict[str, Any]:
    """All that is known of a URL at a time. `known` is False when no table has heard of it."""
    require_same_keys(store, read_manifest(store))
    reader = Reader.open(store)
    newest = reader.committed()
    found = UrlPolicy(settings.url).canonical(raw if "://" in raw else f"https://{raw}")
    if isinstance(found, Refusal):
        seeds = _seeds_by_line(reader, newest["versions"], raw) if newest else []
        return {"given": raw, "url": None, "refused": found.reason, "known": bool(seeds), "seeds": seeds}
    answer: dict[str, Any] = {"given": raw, "url": found.url, "host": found.host, "url_key": found.key}
    if newest is None:
        return {**answer, "refused": None, "known": False}
    return answer | _from_tables(Asked(reader, newest["versions"], found, now), settings, newest["round"])


def _from_tables(asked: Asked, settings: Settings, committed: int) -> dict[str, Any]:
    first_round = known_since(asked)
    visit = _first(asked.rows(schemas.FRONTIER, of_key(asked.url.key)))
    seeds = asked.rows(schemas.SEEDS, (pc.field("url_key") == asked.url.key) | (pc.field("line") == asked.url.url))
    return {
        "committed_round": committed,
        "refused": refusal(asked, settings, visit["depth"] if visit else 0),
        "known": first_round is not None,
        "known_since_round": first_round,
        "found_on": found_on(asked, visit, first_round),
        "seeds": [plain(row) for row in seeds],
        "frontier": plain(visit) if visit else None,
        "plans": [plain(row) for row in planned(asked)],
        "left_out_of_host": [plain(row) for row in left_out(asked)],
        "captures": captures(asked),
        "host_state": host_state(asked, settings),
    }


def known_since(asked: Asked) -> int | None:
    """The round that found the URL."""
    in_bucket = pc.field("bucket") == asked.reader.bucket_of(asked.url.key)
    rows = asked.rows(schemas.URL_CHECKSUMS, in_bucket & of_key(asked.url.key), ("round",))
    return min((row["round"] for row in rows), default=None)


def found_on(asked: Asked, visit: Row | None, first_round: int | None) -> dict[str, Any] | None:
    """The page or redirect that led here. It was captured in the round that found the URL."""
    if visit is None:
        return None
    page = None
    if visit["source_key"] is not None and first_round is not None:
        where = of_round(first_round) & of_key(visit["source_key"])
        page = _first(asked.rows(schemas.CAPTURES, where, ("url",)))
    return {"source": visit["source"], "url": page["url"] if page else None, "round": first_round}


def planned(asked: Asked) -> list[Row]:
    """The plans that hold the URL, by round."""
    where = (pc.field("kind") == "url") & of_key(asked.url.key)
    return sorted(asked.rows(schemas.PLANS, where, PLAN_COLUMNS[:7]), key=lambda row: row["round"])


def left_out(asked: Asked) -> list[Row]:
    """What the plans left out of its host and why, by round: counts, for plans do not list what they leave."""
    where = (pc.field("kind") == "left_out") & (pc.field("host") == asked.url.host)
    return sorted(asked.rows(schemas.PLANS, where, ("round", "reason", "rows")), key=lambda row: row["round"])


def captures(asked: Asked) -> list[dict[str, Any]]:
    """Every visit, with the URL of the capture that had the content before."""
    rows = captures_of(asked.reader, asked.versions, asked.url.key)
    return [{**plain(row), "duplicate_of_url": _url_of(asked, row)} for row in rows]


def _url_of(asked: Asked, row: Row) -> str | None:
    if row["duplicate_of_key"] is None:
        return None
    where = of_round(row["duplicate_of_round"]) & of_key(row["duplicate_of_key"])
    found = _first(asked.rows(schemas.CAPTURES, where, ("url",)))
    return found["url"] if found else None


def host_state(asked: Asked, settings: Settings) -> dict[str, Any] | None:
    """What is known of the host, and what its robots.txt says of this URL; None for a host never asked."""
    key = host_key(asked.url.host)
    where = (pc.field("bucket") == asked.reader.bucket_of(key)) & (pc.field("host_key") == key)
    rows = asked.rows(schemas.HOSTS, where)
    if not rows:
        return None
    newest = max(rows, key=lambda row: row["round"])
    return {
        "host": newest["host"],
        "round": newest["round"],
        "addresses": [one["address"] for one in newest["addresses"] or []],
        "robots": robots_verdict(asked, newest["robots"] or [], settings),
        "crawl_delay_s": newest["crawl_delay_s"],
        "not_before": instant(newest["not_before"]) if newest["not_before"] else None,
        "last_request_at": instant(newest["last_request_at"]) if newest["last_request_at"] else None,
        "failures": newest["failures"],
        "spread_until": instant(newest["horizon_at"]) if newest["horizon_at"] else None,
    }


def robots_verdict(asked: Asked, rows: list[Row], settings: Settings) -> dict[str, Any]:
    """What a fetch would make of the stored copies of robots.txt now, and the line that decides.

    `allowed` is None where nothing is known yet. With `standing` expired it is what the last copy says; the server is
    asked again before the URL is.
    """
    from crawler.fetch.network import WEB
    from crawler.fetch.policies import product_token
    from crawler.fetch.robots_cache import has_rules, standing
    from crawler.page.robots import ALLOW_ALL, Robots, line_at

    scheme = asked.url.url.partition(":")[0]
    if scheme not in WEB:
        return {"standing": "not_asked", "status": None, "allowed": True, "fetched_at": None}
    copies = [RobotsCopy(row["scheme"], row["fetched_at"], row["status"], row["body"] or b"") for row in rows]
    held = standing(copies, scheme, asked.now, settings.fetch.robots_ttl_s)
    copy, failure = held.copy, held.failure
    rules = Robots.from_bytes(copy.body, product_token(settings.crawl)) if copy and has_rules(copy) else ALLOW_ALL
    verdict = rules.judge(asked.url.url)
    line = line_at(copy.body, verdict.at) if copy and verdict.at is not None else None
    is_shut = held.how == "unreachable"
    newest = failure if failure and (is_shut or copy is None) else copy
    return {
        "standing": held.how,
        "status": newest.status if newest else None,
        "allowed": None if held.how == "unknown" else not is_shut and verdict.allowed,
        "fetched_at": instant(newest.fetched_at) if newest else None,
        "line": line.number if line and not is_shut else None,
        "rule": line.text if line and not is_shut else None,
        "answered": copy is not None,
        "has_rules": copy is not None and has_rules(copy),
        "unreachable_since": instant(failure.fetched_at) if failure else None,
    }


def refusal(asked: Asked, settings: Settings, depth: int) -> str | None:
    """Why today's settings refuse the URL, the scope that the seeds opened included; None when they do not."""
    lines = [line for path in settings.filters.block_lists for line in Path(path).read_text("utf-8").splitlines()]
    return UrlFilters(settings.filters, lines, scope_of(asked, settings)).refuse(asked.url, depth)


def scope_of(asked: Asked, settings: Settings) -> Scope:
    """What the seeds opened: their hosts or registered domains, and their ports."""
    seeds = asked.reader.rows(schemas.SEEDS, asked.versions, ("host", "verdict"), pc.field("host").is_valid())
    named = set(seeds["host"].to_pylist())
    admitted = set(seeds.filter(pc.field("verdict") == "admitted")["host"].to_pylist())
    names = admitted if settings.scope.mode == "hosts" else {registered_domain(host) for host in admitted}
    return Scope(settings.scope.mode, _keys(names), _keys(host for host in named if host_port(host)))


def _keys(names: Iterable[str]) -> bytes:
    return bytes(np.sort(np.array([host_key(name) for name in names], "<i8")).tobytes())


def _seeds_by_line(reader: Reader, versions: Versions, raw: str) -> list[dict[str, Any]]:
    rows: list[Row] = reader.rows(schemas.SEEDS, versions, where=pc.field("line") == raw).to_pylist()
    return [plain(row) for row in rows]


def _first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None
