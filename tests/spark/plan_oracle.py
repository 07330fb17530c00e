"""The plan by its rules in plain Python: everything in lists, everything sorted."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crawler.page.url import host_name, private_domain, registered_domain
from crawler.settings import Settings
from tests.spark.rows import NOW, Row


def reasons(
    rows: Sequence[Row], known: Sequence[Row], settings: Settings, addresses: Mapping[str, str]
) -> dict[int, str | None]:
    """Why each due URL is left out, None where it is planned."""
    reason: dict[int, str | None] = {}
    states = group(known, lambda row: host_name(row["host"]))
    queues = group(rows, lambda row: host_name(row["host"]))
    late = late_names(queues, states, settings)
    open_rows: list[dict[str, Any]] = []
    for name, queue in queues.items():
        most = most_of(states[name], settings)
        for position, row in enumerate(sorted(queue, key=best_first), 1):
            if most is None or name in late:
                reason[row["url_key"]] = "host_waiting" if most is None else "domain_hosts"
            elif position > most:
                reason[row["url_key"]] = "host_budget"
            else:
                open_rows.append({**row, "position": position, "name": name})
    take_turns(open_rows, settings)
    share = share_of(settings)
    for address in sorted(set(addresses.values())):
        at = [row for row in open_rows if addresses.get(row["name"]) == address]
        for place, row in enumerate(sorted(at, key=in_turn), 1):
            if place > settings.round.time_limit_s // (settings.fetch.delay_s * settings.fetch.address_delay_share):
                reason[row["url_key"]] = "address_budget"
            if place > share and not row["over"]:
                row["over_address"] = True
    for row in open_rows:
        row["over"] = row["over"] or ("address_share" if row.get("over_address") else None)
    fitting = sorted((row for row in open_rows if row["url_key"] not in reason), key=in_turn)
    for place, row in enumerate(fitting):
        is_in = place < settings.round.max_urls
        reason[row["url_key"]] = None if is_in else row["over"] or "round_budget"
    return reason


def late_names(queues: Mapping[str, list[Row]], states: Mapping[str, list[Row]], settings: Settings) -> set[str]:
    """The new names beyond the first few of their owner."""
    new = [
        name
        for name, queue in queues.items()
        if all(row["depth"] > 0 for row in queue) and not any(row["last_request_at"] for row in states[name])
    ]
    late: set[str] = set()
    for names in group(new, private_domain).values():
        ordered = sorted(names, key=lambda name: min(map(best_first, queues[name])))
        late.update(ordered[settings.round.max_new_hosts_per_domain :])
    return late


def most_of(states: Sequence[Row], settings: Settings) -> float | None:
    """How many URLs a name may give; None while it may not be asked."""
    delay = max([settings.fetch.delay_s, *(row["crawl_delay_s"] or 0.0 for row in states)])
    asked = max((row["last_request_at"] for row in states), default=None)
    ready = [row["not_before"] for row in states] + ([asked + delay] if asked is not None else [])
    left = settings.round.time_limit_s - max(0.0, *(at - NOW for at in ready), 0.0)
    if left <= 0:
        return None
    return min(settings.round.max_urls_per_host, max(1, left // delay) if delay else math.inf)


def take_turns(rows: Sequence[dict[str, Any]], settings: Settings) -> None:
    share = share_of(settings)
    for of_domain in group(rows, lambda row: registered_domain(row["name"])).values():
        turns: defaultdict[int, int] = defaultdict(int)
        ordered = sorted(of_domain, key=lambda row: (row["tier"], row["position"], row["due_at"], row["url_key"]))
        for number, row in enumerate(ordered, 1):
            turns[row["tier"]] += 1
            row |= {"turn": turns[row["tier"]], "over": "domain_share" if number > share else None}


def share_of(settings: Settings) -> int:
    return math.ceil(settings.round.max_domain_share * settings.round.max_urls)


def best_first(row: Row) -> tuple[Any, ...]:
    return row["tier"], row["due_at"], row["url_key"]


def in_turn(row: Row) -> tuple[Any, ...]:
    return row["over"] is not None, row["tier"], row["turn"], row["due_at"], row["url_key"]


def group(items: Iterable[Any], key: Any) -> defaultdict[Any, list[Any]]:
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
