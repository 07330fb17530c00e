"""The demo web as a whole: its hosts, its pages, and that what is expected of it is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest

from tests.web import DemoWeb, Scale
from tests.web.ask import ask
from tests.web.expected import expect
from tests.web.web import Web


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb() as running:
        yield running


def test_hosts_are_many_and_share_addresses_and_domains(web: DemoWeb) -> None:
    entries = [line.split() for line in web.hosts_file.read_text().splitlines()]
    assert len(entries) >= 40
    assert all(host.endswith(".test") and address.startswith("127.") for address, host in entries)
    addresses = Counter(address for address, _ in entries)
    assert sorted(addresses.values())[-2:] == [8, 9]
    domains = Counter(".".join(host.split(".")[-2:]) for _, host in entries)
    assert {domains["nest.test"], domains["meadow.test"], domains["harbour.test"]} == {9, 4, 2}


def test_seeds_cover_every_domain(web: DemoWeb) -> None:
    seeds = web.seeds_file.read_text().split()
    assert seeds == web.seeds
    hosts = {seed.split("/")[2].partition(":")[0] for seed in seeds}
    assert {".".join(host.split(".")[-2:]) for host in hosts} == {
        ".".join(host.split(".")[-2:]) for host in web.web.addresses
    }


def test_pages_are_a_function_of_seed_and_url() -> None:
    def answers(seed: int) -> list[bytes]:
        web = Web(seed, Scale(), 8000)
        places = [(site.host, path) for site in Web(1, Scale(), 8000).country.sites.values() for path in site.paths[:3]]
        return [web.answer(host, web.addresses[host], path, {}).body for host, path in places]

    assert answers(1) == answers(1)
    assert all(first != second for first, second in zip(answers(1), answers(2), strict=True))


def test_ordinary_pages_look_like_pages() -> None:
    web = Web(1, Scale(), 8000)
    pages = [_body(web, url) for url in _ordinary(web)]
    assert len(pages) == 300
    assert all(10 <= page.count("<a href") <= 100 and "<title>" in page and "<nav" in page for page in pages)
    assert max(Counter(len(site.paths) for site in web.country.sites.values())) <= 40
    words = Counter(re.findall(r"\w+", " ".join(re.sub(r"<[^>]*>", " ", page) for page in pages).lower()))
    assert words["the"] > 2 * words["is"] > 10 * words.most_common(600)[-1][1] > 0


def test_ordinary_pages_link_other_hosts() -> None:
    web = Web(1, Scale(), 8000)
    abroad = {
        site.host: {other.host for page in range(len(site.paths)) for other, _ in web.country.links(site, page)}
        for site in web.country.sites.values()
    }
    assert min(len(hosts - {host}) for host, hosts in abroad.items()) > 3


def test_words_of_two_pages_are_not_near_duplicates() -> None:
    web = Web(1, Scale(), 8000)
    site = web.country.sites["meadow.test"]
    shingles = [_shingles(_body(web, web.world.url(site.host, path))) for path in site.paths]
    most = max(_jaccard(a, b) for turn, a in enumerate(shingles) for b in shingles[:turn])
    assert most < 0.5


@pytest.mark.parametrize(
    ("path", "least", "most"),
    [("/story-edited", 0.85, 0.97), ("/story-links", 1, 1), ("/story-print", 1, 1), ("/story-rewritten", 0.2, 0.5)],
)
def test_stories_are_as_alike_as_the_table_says(path: str, least: float, most: float) -> None:
    web = Web(1, Scale(), 8000)
    bodies = [_body(web, web.world.url("echo.test", name)) for name in ("/story", path)]
    assert bodies[0] != bodies[1]
    assert least <= _jaccard(*map(_shingles, bodies)) <= most


def test_a_plain_crawl_finds_what_is_expected_when_expected() -> None:
    """By a naive crawler that knows href only, on the hosts where that is enough."""
    web = Web(1, Scale(), 8000)
    expected = expect(web)
    clever = re.compile(r"http://(atlas|cabinet|counter|courier|forward|knots|packed|turns|xn--\S*)\.test")
    found = _naive_rounds(web, rounds=4)
    wanted = {url: first for url, first in expected.rounds.items() if not clever.match(url)}
    assert {url: found.get(url) for url in wanted} == wanted
    assert expected.within(3) <= expected.must_fetch


def test_everything_expected_is_there() -> None:
    web = Web(1, Scale(), 8000)
    expected = expect(web)
    dead = {"/returns", "/500", "/plain", "/missing", "/gone", "/forbidden", "/legal", "/strange", "/later", "/tired"}
    missing = [url for url in expected.must_fetch if _status(web, url) >= 400]
    assert {"/" + url.split("/", 3)[3] for url in missing} == dead
    assert not expected.must_fetch & expected.never
    assert not [url for url in expected.must_fetch if url.startswith(expected.never_prefixes)]


def test_calendar_stairs_and_sessions_have_no_end() -> None:
    web = Web(1, Scale(), 8000)
    almanac = _body(web, web.world.url("almanac.test", "/calendar/2026/12"))
    assert 'href="/calendar/2027/01"' in almanac
    assert 'href="41/"' in _body(web, web.world.url("stairs.test", "/step/40/"))
    sessions = [set(re.findall(r"[0-9a-f]{32}", _body(web, web.world.url("counter.test", "/shop")))) for _ in range(2)]
    assert not sessions[0] & sessions[1]


def test_scale_without_corners() -> None:
    with DemoWeb(scale=Scale(pages=2_000, hosts=45, words=50, corners=False)) as web:
        assert len(web.web.addresses) == 45
        assert 1_990 <= len(web.expected.must_fetch) <= 2_000
        assert ask(web, "meadow.test").status == 200


def _ordinary(web: Web) -> list[str]:
    return [web.world.url(site.host, path) for site in web.country.sites.values() for path in site.paths]


def _body(web: Web, url: str) -> str:
    return _answered(web, url)[1].decode("utf-8", "replace")


def _status(web: Web, url: str) -> int:
    return _answered(web, url)[0]


def _answered(web: Web, url: str) -> tuple[int, bytes]:
    host, _, path = url.removeprefix("http://").partition("/")
    name = host.partition(":")[0]
    answer = web.answer(name, web.addresses.get(name, ""), "/" + path, {})
    return answer.status, answer.body


def _naive_rounds(web: Web, rounds: int) -> dict[str, int]:
    found = dict.fromkeys(web.seeds(), 1)
    for number in range(1, rounds):
        for url in [url for url, first in found.items() if first == number]:
            for href in re.findall(r'<a href="(?!http://\[)([^"]*)"', _body(web, url)):
                target = urljoin(url, href).partition("#")[0]
                host = target.split("/")[2].lower() if target.startswith("http://") else ""
                if host.partition(":")[0] in web.addresses:
                    found.setdefault(f"http://{host}/{target.split('/', 3)[3]}", number + 1)
    return found


def _shingles(body: str) -> set[tuple[str, ...]]:
    words = re.sub(r"<[^>]*>", " ", body).casefold().split()
    return set(zip(*(words[turn:] for turn in range(5)), strict=False))


def _jaccard(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    return len(a & b) / len(a | b)
