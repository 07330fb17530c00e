"""A plan file as a fetch task reads it."""

from __future__ import annotations

import pyarrow.parquet as pq

from crawler.fetch.host_queue import ROWS_AHEAD, HostQueue, HostRun
from crawler.fetch.plan_file import Plan, read_plan
from crawler.fetch.politeness import Turn
from crawler.records import PlannedUrl
from tests.fetch.partition_runs import Row, Run, host_state, planned

A, B = "http://a.test/", "http://b.test:81/"
KNOWN = {"addresses": [{"address": "192.0.2.7", "expires_at": 9.0}], "crawl_delay_s": 3.0, "failures": 2}


def read(run: Run, **options: object) -> Plan:
    return read_plan(run.store, run.task().plan_files, **options)  # type: ignore[arg-type]  # a table of cases is looser than the types


def urls(plan: Plan) -> dict[str, list[PlannedUrl]]:
    return {one.state.host: plan.urls_of(one.first, one.end) for one in plan.hosts}


def test_urls_come_by_host_in_the_order_of_their_positions(run: Run) -> None:
    run.rows = [planned(f"{B}{n}", 9 - n, depth=n) for n in range(10)] + [planned(A, 0, tier=2, etag='"x"')]
    run.rows.append(planned(f"{A}left-out", 1, kind="left_out"))
    plan = read(run)
    assert (plan.urls, [one.state.host for one in plan.hosts]) == (11, ["a.test", "b.test:81"])
    found = urls(plan)
    assert [url.url for url in found["b.test:81"]] == [f"{B}{n}" for n in range(9, -1, -1)]
    assert (found["a.test"][0].tier, found["a.test"][0].etag, found["b.test:81"][0].depth) == (2, '"x"', 9)


def test_the_state_is_known_even_when_its_row_is_done(run: Run) -> None:
    run.plan(A, host_state=host_state(host="a.test", **KNOWN), gap_factor=4, grouped_by=["192.0.2.7", "x.test"])
    run.plan(f"{A}2", f"{B}1", gap_factor=4)
    done = [row["url_key"] for row in run.rows if row["url"] in (A, f"{B}1")]
    (host,) = read(run, done=done).hosts
    assert (host.state.crawl_delay_s, host.state.failures, host.state.gap_factor) == (3.0, 2, 4)
    assert host.grouped_by == {"192.0.2.7", "x.test"}
    assert read(run, done=[row["url_key"] for row in run.rows]).hosts == []


def test_a_newer_state_wins_but_does_not_change_how_the_plan_grouped(run: Run) -> None:
    run.plan(A, host_state=host_state(host="a.test", **KNOWN), grouped_by=["192.0.2.7"])
    newer: Row = {"addresses": [{"address": "192.0.2.8", "expires_at": 9.0}], "is_out": True, "not_before": 5.0}
    (host,) = read(run, newer={"a.test": newer}).hosts
    assert ([known.address for known in host.state.addresses], host.state.is_out) == (["192.0.2.8"], True)
    assert host.grouped_by == {"192.0.2.7"}


def test_a_host_gives_its_urls_one_by_one(run: Run) -> None:
    count = 2 * ROWS_AHEAD + 3
    plan = read(run.plan(*(f"{A}{n}" for n in range(count))))
    host = HostRun.of(plan, plan.hosts[0], Turn())
    seen: list[str] = []
    while host.current is not None:
        assert host.urls_left == count - len(seen)
        seen.append(host.current.url)
        host.advance()
    assert seen == [f"{A}{n}" for n in range(count)]


def test_the_queue_gives_the_host_that_is_due_first(run: Run) -> None:
    plan = read(run.plan(A, B))
    one, other = (HostRun.of(plan, planned_host, Turn()) for planned_host in plan.hosts)
    queue = HostQueue()
    queue.push(one, 20.0)
    queue.push(other, 10.0)
    assert (queue.next_at(), queue.is_due(9.9), queue.pop_due(9.9)) == (10.0, False, None)
    assert [queue.pop_due(30.0), queue.pop_due(30.0), queue.pop_due(30.0)] == [other, one, None]


def test_each_of_many_hosts_gets_its_own_urls(run: Run) -> None:
    """A grouping that does not keep the order of rows went unseen with few hosts."""
    run.rows = [planned(f"http://h{n % 1000}.test/{n}", n // 1000) for n in range(3000)]
    plan = read(run)
    assert len(plan.hosts) == 1000
    assert all({url.host for url in found} == {host} and len(found) == 3 for host, found in urls(plan).items())


def test_the_plan_of_an_older_version_lacks_what_came_later(run: Run) -> None:
    run.rows.append(planned(f"{A}1", 0))
    task = run.task()
    path = run.folder / task.plan_files[0]
    rows = pq.read_table(path)
    pq.write_table(rows.drop_columns(["seed_hops", "source"]), path)
    (found,) = read_plan(run.store, task.plan_files).urls_of(0, 1)
    assert (found.url, found.seed_hops) == (f"{A}1", None)
