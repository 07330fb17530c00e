"""The answer of `orbweaver why` for people: one line a fact, in the order in which things happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.words import LEFT_OUT, count_of, lines_of, number

Facts = dict[str, Any]
REFUSALS = {
    "out_of_scope": "its host is in no scope that seeds opened",
    "too_deep": "too many links from a seed",
    "port": "its port is not open: 80 and 443 are, those of filters.ports, and that of a seed on the seed's own host",
}


def why_text(facts: Facts) -> str:
    """All facts as lines."""
    lines = [f"URL       {facts['url'] or facts['given']}", *_canonical(facts), *_seeds(facts)]
    if facts["url"]:
        lines += [*_known(facts), *_frontier(facts), *_plans(facts), *_captures(facts), *_host(facts)]
    return lines_of(lines)


def _canonical(facts: Facts) -> Iterator[str]:
    if facts["url"] and facts["url"] != facts["given"]:
        yield f"given as  {facts['given']}"
    if facts["refused"]:
        yield f"refused   {facts['refused']}: {REFUSALS.get(facts['refused'], 'by the settings as they are now')}"


def _seeds(facts: Facts) -> Iterator[str]:
    for seed in facts.get("seeds", ()):
        yield f"seed      round {seed['round']}: {seed['verdict']} ({_way(seed)})"


def _way(seed: Facts) -> str:
    """How a seed came: in a file, or by the redirect of another seed."""
    if seed["inbox_file"]:
        return str(seed["inbox_file"])
    return f"{seed['redirected_from']} redirects here, {count_of(seed['seed_hops'], 'redirect')} from the inbox"


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
        yield f"redirects to {row['fetch_redirect']}{', which is a seed, too' if row['seed_hops'] else ''}"
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
    yield f"          robots.txt {robots_text(state['robots'])}"
    if state["crawl_delay_s"]:
        yield f"          asks for {state['crawl_delay_s']:g} s between requests"
    if state["not_before"]:
        yield f"          not to be asked before {state['not_before']}"
    if state["failures"]:
        yield f"          out of {count_of(state['failures'], 'round')} in a row for its failures"


def robots_text(robots: Facts) -> str:
    """The verdict that a fetch would give now, and the line or the state that decides it."""
    how, since = robots["standing"], robots.get("unreachable_since")
    if how == "not_asked":
        return "does not count for this scheme"
    if how == "unknown":
        return "never read; it is asked for first"
    verdict = "allows this URL" if robots["allowed"] else "denies this URL"
    read = f"(status {robots['status'] or 'unreachable'}, read {robots['fetched_at']})"
    if how == "unreachable":
        return f"{verdict}: unreachable since {since} {read}, which forbids everything for 30 days"
    if robots["rule"]:
        verdict += f" by line {robots['line']}: {robots['rule']}"
    elif not robots["allowed"]:
        verdict += ": its wildcards cost too much to try"
    elif robots["has_rules"]:
        verdict += ": no rule applies"
    else:
        verdict += ": there is none" if robots["answered"] else ": it never answered"
    if how == "outlived":
        answered = f" {read}" if robots["answered"] else ""
        return f"{verdict}{answered}; unreachable since {since}, for 30 days and more"
    return f"{verdict} {read}" + ("; it is asked for again first" if how == "expired" else "")
