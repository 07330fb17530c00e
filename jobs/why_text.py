"""The answer of `orbweaver why` for people: one line a fact, in the order in which things happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.words import LEFT_OUT, count_of, number

Facts = dict[str, Any]
REFUSALS = {"out_of_scope": "its host is in no scope that seeds opened", "too_deep": "too many links from a seed"}


def why_text(facts: Facts) -> str:
    """All facts as lines."""
    lines = [f"URL       {facts['url'] or facts['given']}", *_canonical(facts), *_seeds(facts)]
    if facts["url"]:
        lines += [*_known(facts), *_frontier(facts), *_plans(facts), *_captures(facts), *_host(facts)]
    return "\n".join(lines)


def _canonical(facts: Facts) -> Iterator[str]:
    if facts["url"] and facts["url"] != facts["given"]:
        yield f"given as  {facts['given']}"
    if facts["refused"]:
        yield f"refused   {facts['refused']}: {REFUSALS.get(facts['refused'], 'by the settings as they are now')}"


def _seeds(facts: Facts) -> Iterator[str]:
    for seed in facts.get("seeds", ()):
        yield f"seed      round {seed['round']}: {seed['verdict']} ({seed['inbox_file']})"


def _known(facts: Facts) -> Iterator[str]:
    if not facts["known"]:
        yield "known     no: no committed round has found it"
        return
    found = facts["found_on"]
    how = f": {found['source']}" + (f" on {found['url']}" if found["url"] else "") if found else ""
    yield f"known     since round {facts['known_since_round']}{how}"


def _frontier(facts: Facts) -> Iterator[str]:
    row = facts.get("frontier")
    if row:
        yield (
            f"frontier  {row['status']}, due {row['due_at']}, tier {row['tier']}, depth {row['depth']}, "
            f"{count_of(row['visits'], 'visit')}, {count_of(row['changes'], 'change')}, "
            f"{count_of(row['failures'], 'failure')} in a row"
        )


def _plans(facts: Facts) -> Iterator[str]:
    for row in facts.get("plans", ()):
        yield f"planned   round {row['round']}: tier {row['tier']}, place {row['position'] + 1} in its host's queue"
    for row in facts.get("left_out_of_host", ()):
        reason = f"{row['reason']}: {LEFT_OUT[row['reason']]}" if row["reason"] in LEFT_OUT else row["reason"]
        yield f"left out  round {row['round']}: {count_of(row['rows'], 'URL')} of its host, for {reason}"


def _captures(facts: Facts) -> Iterator[str]:
    for row in facts.get("captures", ()):
        status = f" {row['fetch_status']}" if row["fetch_status"] else ""
        detail = f": {row['reason']}" if row["reason"] else ""
        yield f"visit     round {row['round']}, {row['fetch_time']}: {row['outcome']}{status}{detail}"
        yield from (f"          {line}" for line in _details(row))


def _details(row: Facts) -> Iterator[str]:
    if row["fetch_redirect"]:
        yield f"redirects to {row['fetch_redirect']}"
    if row["duplicate_kind"]:
        original = row["duplicate_of_url"] or f"key {row['duplicate_of_key']}"
        kind = f"{row['duplicate_kind']} duplicate ({row['similarity']:.2f})"
        yield f"{kind} of {original}, round {row['duplicate_of_round']}"
    if row["content_mime_detected"]:
        kept = f"{number(row['links_kept'])} of {number(row['links_found'])} links kept"
        yield f"{row['content_mime_detected']}, {number(row['content_length'])} bytes, {kept}{_refused_links(row)}"
    if row["warc_filename"]:
        yield f"{row['warc_record_type']} in {row['warc_filename']} at {row['warc_record_offset']}"


def _refused_links(row: Facts) -> str:
    refused = row["links_refused"] or {}
    return f" (refused: {', '.join(f'{reason} {many}' for reason, many in sorted(refused.items()))})" if refused else ""


def _host(facts: Facts) -> Iterator[str]:
    state = facts.get("host_state")
    if not state:
        yield f"host      {facts['host']}: never asked"
        return
    addresses = ", ".join(state["addresses"]) or "no known address"
    yield f"host      {state['host']} at {addresses}, seen in round {state['round']}"
    yield f"          robots.txt {_robots(state['robots'])}"
    if state["crawl_delay_s"]:
        yield f"          asks for {state['crawl_delay_s']:g} s between requests"
    if state["not_before"]:
        yield f"          not to be asked before {state['not_before']}"
    if state["failures"]:
        yield f"          out of {count_of(state['failures'], 'round')} in a row for its failures"


def _robots(robots: Facts) -> str:
    if robots["status"] is None:
        return "never read"
    verdict = "allows this URL" if robots["allowed"] else "denies this URL"
    return f"{verdict} (status {robots['status'] or 'unreachable'}, read {robots['fetched_at']})"
