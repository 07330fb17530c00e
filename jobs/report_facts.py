"""What a committed round did, in Heritrix's words, counted from the tables at the versions it committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from crawler import schemas
from crawler.records import Outcome
from crawler.settings import Settings
from crawler.settings_text import settings_hash
from crawler.tables.reader import Rows, of_round, pc
from jobs.report_clusters import clusters_of
from jobs.report_hosts import crawl_delays, gaps_of, hosts_of
from jobs.report_round import Round
from jobs.report_times import due_days, over_time
from jobs.words import instant

Facts = dict[str, Any]
SUCCESSES = (Outcome.SUCCESS, Outcome.NOT_MODIFIED, Outcome.REDIRECT_TEMP, Outcome.REDIRECT_PERM)
DISREGARDED = (
    Outcome.ROBOTS_DENIED, Outcome.ADDRESS_REFUSED, Outcome.UNSUPPORTED_SCHEME, Outcome.UNWANTED_TYPE
)  # fmt: skip
NOT_REACHED = (Outcome.NOT_REACHED, Outcome.HOST_FAILED)
CONTENT_KINDS = {"payload": "duplicate_by_hash", "text": "duplicate_by_text", "near": "near_duplicate"}


def report_facts(rnd: Round, settings: Settings) -> Facts:
    """All that the report says."""
    asked = rnd.asked
    delays = crawl_delays(rnd.reader, rnd.versions)
    return {
        **round_facts(rnd, settings),
        "seeds": seed_facts(rnd),
        "uris": uri_facts(rnd.captures),
        "contents": content_facts(rnd.captures),
        "rates": rate_facts(rnd, asked),
        "links": link_facts(rnd.captures),
        "by_status": groups_of(asked, "fetch_status"),
        "by_mime": groups_of(asked.filter(pc.is_valid(asked["content_mime_detected"])), "content_mime_detected"),
        "parsing": parse_facts(asked),
        "hosts": hosts_of(rnd.captures),
        "gaps": gaps_of(asked, delays, settings.fetch.delay_s),
        "near_duplicates": clusters_of(rnd.reader, rnd.versions, rnd.captures),
        "pages_over_time": over_time(asked),
        "due": due_days(rnd),
    }


def round_facts(rnd: Round, settings: Settings) -> Facts:
    """Which round it is, when it ran, what it planned and how long each stage took."""
    times = {state: row["recorded_at"] for state, row in rnd.states.items()}
    order = ("OPENED", "PLANNED", "FETCHED", "COMMITTED")
    stages = zip(("plan", "fetch", "reconcile_and_commit"), order, order[1:], strict=False)
    counts = rnd.end["counts"]
    return {
        "crawl": rnd.end["segment_folder"].split("/")[1],
        "lake": rnd.reader.store.uri,
        "round": rnd.number,
        "state": rnd.end["state"],
        "scheduled_at": instant(rnd.end["now_at"]),
        "began_at": instant(times["OPENED"]),
        "ended_at": instant(times["COMMITTED"]),
        "duration_s": rnd.seconds("OPENED", "COMMITTED"),
        "stages_s": {name: rnd.seconds(start, end) for name, start, end in stages},
        "settings_hash": rnd.end["settings_hash"],
        "settings_are_current": rnd.end["settings_hash"] == settings_hash(settings),
        "planned": {"urls": counts.get("planned", 0), "hosts": counts.get("planned_hosts", 0)},
        "left_out": _with_prefix(counts, "left_out."),
        "new_urls": counts.get("new_urls", 0),
        "warc": {name: counts.get(name, 0) for name in ("segments", "warc_files", "warc_bytes")},
    }


def seed_facts(rnd: Round) -> Facts:
    """Lines of the inbox that the round took in, by verdict, and how many of the admitted seeds it crawled; and the new
    seeds to which seeds redirected, whose turn comes in the next round."""
    where = of_round(rnd.number)
    rows = rnd.reader.rows(schemas.SEEDS, rnd.versions, ("url_key", "verdict", "redirected_from"), where)
    lines = rows.filter(pc.is_null(rows["redirected_from"]))
    verdicts = _counts(lines, "verdict")
    admitted = lines.filter(pc.equal(lines["verdict"], "admitted"))
    succeeded = rnd.captures.filter(_is_one_of(rnd.captures, SUCCESSES))
    crawled = pc.sum(pc.is_in(admitted["url_key"], succeeded["url_key"].combine_chunks())).as_py() or 0
    return {
        "lines": lines.num_rows,
        "verdicts": verdicts,
        "crawled": crawled,
        "uncrawled": admitted.num_rows - crawled,
        "from_redirects": rows.num_rows - lines.num_rows,
    }


def uri_facts(captures: Rows) -> Facts:
    """URIs by how they ended; every planned one is counted once."""
    outcomes = _counts(captures, "outcome")
    successes, disregarded = _sum(outcomes, SUCCESSES), _sum(outcomes, DISREGARDED)
    not_reached = _sum(outcomes, NOT_REACHED)
    return {
        "planned": captures.num_rows,
        "processed": captures.num_rows - not_reached,
        "successes": successes,
        "failures": captures.num_rows - successes - disregarded - not_reached,
        "disregarded": disregarded,
        "not_reached": not_reached,
        "by_outcome": outcomes,
        "failure_reasons": failure_reasons(captures),
    }


def failure_reasons(captures: Rows) -> list[Facts]:
    """The commonest pairs of outcome and reason among what did not succeed."""
    return _reasons(captures.filter(pc.invert(_is_one_of(captures, SUCCESSES))), "outcome")


def parse_facts(asked: Rows) -> Facts:
    """Documents by how their parsing ended, and why it failed or was stopped."""
    parsed = asked.filter(pc.is_valid(asked["parse_status"]))
    has_reason = pc.and_(pc.not_equal(parsed["parse_status"], "ok"), pc.is_valid(parsed["reason"]))
    stopped = parsed.filter(has_reason)
    return {"by_status": groups_of(parsed, "parse_status"), "reasons": _reasons(stopped, "parse_status")}


def content_facts(captures: Rows) -> Facts:
    """Counts and bytes of what came, by whether it was new."""
    has_body = captures.filter(_is_one_of(captures, (Outcome.SUCCESS, Outcome.NOT_MODIFIED)))
    is_same = pc.equal(has_body["outcome"], str(Outcome.NOT_MODIFIED))
    kinds = pc.if_else(is_same, "not_modified", pc.fill_null(has_body["duplicate_kind"], "novel"))
    bytes_of = pc.fill_null(has_body["content_length"], 0)
    groups = pa.table({"kind": kinds, "bytes": bytes_of}).group_by("kind")
    sums = groups.aggregate([("bytes", "sum"), ([], "count_all")]).to_pylist()
    found = {CONTENT_KINDS.get(row["kind"], row["kind"]): row for row in sums}
    names = ("novel", *CONTENT_KINDS.values(), "not_modified")
    return {
        name: {"uris": row.get("count_all", 0), "bytes": row.get("bytes_sum", 0)} for name, row in _each(found, names)
    }


def rate_facts(rnd: Round, asked: Rows) -> Facts:
    """URIs and KB a second over the fetch stage."""
    fetch_s = max(rnd.seconds("PLANNED", "FETCHED") or 0.0, 1e-3)
    received = pc.sum(asked["content_length"]).as_py() or 0
    mean = pc.mean(asked["fetch_s"]).as_py()
    return {
        "requests": asked.num_rows,
        "bytes": received,
        "uris_per_s": round(asked.num_rows / fetch_s, 3),
        "kb_per_s": round(received / fetch_s / 1000, 3),
        "mean_fetch_s": None if mean is None else round(mean, 4),
    }


def link_facts(captures: Rows) -> Facts:
    """Links found and kept, and refusals by reason (each page counts a link once)."""
    entries = captures["links_refused"].drop_null().combine_chunks()
    refused: dict[str, int] = {}
    if len(entries):
        pairs = pa.table({"reason": entries.keys, "links": entries.items})
        sums = pairs.group_by("reason").aggregate([("links", "sum")]).to_pylist()
        refused = {row["reason"]: row["links_sum"] for row in sorted(sums, key=lambda row: -row["links_sum"])}
    found, kept = (pc.sum(captures[name]).as_py() or 0 for name in ("links_found", "links_kept"))
    return {"found": found, "kept": kept, "refused": refused}


def groups_of(rows: Rows, name: str) -> list[Facts]:
    """URIs and bytes by the values of a column, most first."""
    sums = rows.group_by(name).aggregate([([], "count_all"), ("content_length", "sum")]).to_pylist()
    groups = [{"value": row[name], "uris": row["count_all"], "bytes": row["content_length_sum"] or 0} for row in sums]
    return sorted(groups, key=lambda group: (-group["uris"], str(group["value"])))


def _reasons(rows: Rows, name: str, most: int = 50) -> list[Facts]:
    groups = rows.group_by([name, "reason"]).aggregate([([], "count_all")])
    found: list[Facts] = groups.rename_columns({"count_all": "uris"}).to_pylist()
    return sorted(found, key=lambda row: (-row["uris"], row[name], row["reason"] or ""))[:most]


def _is_one_of(captures: Rows, outcomes: tuple[Outcome, ...]) -> Rows:
    return pc.is_in(captures["outcome"], pa.array([str(outcome) for outcome in outcomes]))


def _counts(rows: Rows, name: str) -> dict[str, int]:
    found = rows[name].value_counts().to_pylist()
    return {row["values"]: row["counts"] for row in sorted(found, key=lambda row: (-row["counts"], str(row["values"])))}


def _each(found: dict[str, Facts], names: Iterable[str]) -> Iterator[tuple[str, Facts]]:
    return ((name, found.get(name, {})) for name in names)


def _sum(outcomes: dict[str, int], kinds: tuple[Outcome, ...]) -> int:
    return sum(outcomes.get(kind, 0) for kind in kinds)


def _with_prefix(counts: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): many for name, many in sorted(counts.items()) if name.startswith(prefix)}
