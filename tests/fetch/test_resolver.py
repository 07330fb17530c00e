from __future__ import annotations

import asyncio
import itertools
import socket
from collections import Counter

import pytest

from crawler.fetch.addresses import AddressPolicy
from crawler.fetch.resolver import (
    LOOKUPS_AT_ONCE,
    Lookup,
    Resolved,
    Resolver,
    SystemLookup,
    name_of,
    parse_host_map,
    resolve_all,
)
from crawler.records import KnownAddress

HOSTS = """
# a comment
127.0.0.2   one.example two.example  # the rest
127.0.0.3 one.example
::1 Six.Example.
not-an-address three.example
127.0.0.4
"""


class Names:
    """A name server of lists, asked by name."""

    def __init__(self, **answers: list[str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        await asyncio.sleep(0)
        if name not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.answers[name]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def resolver(
    lookup: Lookup, *, allow: tuple[str, ...] = (), ttl_s: float = 60.0, clock: Clock | None = None
) -> Resolver:
    return Resolver(parse_host_map(HOSTS), AddressPolicy(allow, own=()), ttl_s, clock or Clock(), lookup)


def ask(resolver: Resolver, host: str) -> Resolved:
    return asyncio.run(resolver.resolve(host))


def literals(resolved: Resolved) -> list[str]:
    return [known.address for known in resolved.addresses]


def test_a_host_map_is_read_like_hosts_5() -> None:
    assert parse_host_map(HOSTS) == {
        "one.example": ["127.0.0.2", "127.0.0.3"],
        "two.example": ["127.0.0.2"],
        "six.example": ["::1"],
    }


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("a.example", "a.example"),
        ("A.example.:8080", "a.example"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("127.0.0.1:99", "127.0.0.1"),
    ],
)
def test_the_name_in_a_host_key(host: str, name: str) -> None:
    assert name_of(host) == name


@pytest.mark.parametrize(
    ("host", "allow", "expected"),
    [
        ("public", (), (["8.8.8.8"], None, None)),
        ("mixed", (), (["8.8.8.8"], None, None)),
        ("private", (), ([], "private", None)),
        ("private", ("10.0.0.0/8",), (["10.0.0.1"], None, None)),
        ("unknown", (), ([], None, "not_found")),
        ("empty", (), ([], None, "no_address")),
        ("one.example", (), ([], "loopback", None)),
        ("one.example:8080", ("127.0.0.0/8",), (["127.0.0.2", "127.0.0.3"], None, None)),
        ("127.0.0.1:80", (), ([], "loopback", None)),
        ("8.8.8.8", (), (["8.8.8.8"], None, None)),
        ("[::1]:8080", (), ([], "loopback", None)),
        ("[::ffff:10.0.0.1]", (), ([], "private", None)),
        ("müller.example", (), ([], None, "invalid_name")),
        ("", (), ([], None, "invalid_name")),
        ("2130706433", (), ([], "loopback", None)),
    ],
)
def test_only_vetted_addresses_come_back(host: str, allow: tuple[str, ...], expected: tuple[object, ...]) -> None:
    names = Names(public=["8.8.8.8", "8.8.8.8"], mixed=["127.0.0.1", "8.8.8.8"], private=["10.0.0.1", "::1"], empty=[])
    names.answers["2130706433"] = ["127.0.0.1"]
    resolved = ask(resolver(names, allow=allow), host)
    assert (literals(resolved), resolved.refused, resolved.error) == expected


def test_an_answer_is_kept_until_it_expires() -> None:
    names, clock = Names(a=["8.8.8.8"]), Clock()
    subject = resolver(names, ttl_s=60, clock=clock)
    assert ask(subject, "a").addresses == (KnownAddress("8.8.8.8", 1060.0),)
    clock.now = 1059.0
    ask(subject, "a:8080")
    assert names.asked == ["a"]
    clock.now = 1061.0
    ask(subject, "a")
    assert names.asked == ["a", "a"]


def test_what_an_earlier_round_knew_is_vetted_again_and_expires() -> None:
    names, clock = Names(a=["9.9.9.9"]), Clock()
    subject = resolver(names, clock=clock)
    known = [KnownAddress("127.0.0.1", 2000), KnownAddress("8.8.8.8", 1010), KnownAddress("1.1.1.1", 999)]
    subject.seed("a:8080", known)
    assert literals(ask(subject, "a")) == ["8.8.8.8"]
    clock.now = 1011.0
    assert literals(ask(subject, "a")) == ["9.9.9.9"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_addresses_found_together_expire_with_the_first_of_them(order: tuple[int, ...]) -> None:
    """Also where the name server gave them different times; one that we may not ask says nothing about it."""
    known = [KnownAddress("8.8.8.8", 1_010), KnownAddress("1.1.1.1", 1_030), KnownAddress("127.0.0.1", 1_005)]
    names, clock = Names(a=["9.9.9.9"]), Clock()
    subject = resolver(names, clock=clock)
    subject.seed("a", [known[at] for at in order])
    for clock.now, found in ((1_009.9, {"8.8.8.8", "1.1.1.1"}), (1_010.0, {"9.9.9.9"})):
        assert set(literals(ask(subject, "a"))) == found


def test_the_host_map_outranks_what_was_known() -> None:
    subject = resolver(Names(), allow=("127.0.0.0/8",))
    subject.seed("two.example", [KnownAddress("8.8.8.8", 2000)])
    assert literals(ask(subject, "two.example")) == ["127.0.0.2"]


def test_questions_at_one_time_are_one_question() -> None:
    names = Names(a=["8.8.8.8"])

    async def ask_often() -> None:
        subject = resolver(names)
        answers = await asyncio.gather(*(subject.resolve("a") for _ in range(20)))
        assert len({literals(answer)[0] for answer in answers}) == 1

    asyncio.run(ask_often())
    assert names.asked == ["a"]


def test_a_rebinding_name_never_yields_a_private_address() -> None:
    turns = itertools.cycle([["8.8.8.8"], ["127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["::ffff:127.0.0.1"]])

    async def lookup(name: str) -> list[str]:
        return next(turns)

    async def ask_often() -> set[str]:
        subject = resolver(lookup, ttl_s=0)
        return {ip for _ in range(1000) for ip in literals(await subject.resolve("rebind"))}

    assert asyncio.run(ask_often()) == {"8.8.8.8"}


def test_a_hanging_name_server_is_an_error_after_its_time() -> None:
    async def hang(name: str) -> list[str]:
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        return []

    assert ask(resolver(hang), "a").error == "timeout"


@pytest.mark.parametrize("spelling", ["localhost", "2130706433", "0x7f000001", "127.1", "0177.0.0.1"])
def test_the_systems_own_spellings_of_loopback_are_refused(spelling: str) -> None:
    assert ask(resolver(SystemLookup()), spelling).refused == "loopback"


def test_many_names_are_looked_up_within_a_time() -> None:
    """Those whose name servers hang, or who have no address we may ask, are left out; so are those behind them."""
    names = {"a": ["8.8.8.8"], "b": ["8.8.4.4", "10.0.0.1"], "private": ["10.0.0.1"], "none": []}
    asked: Counter[str] = Counter()

    async def lookup(name: str) -> list[str]:
        asked[name] += 1
        if name.startswith("hang"):
            await asyncio.Event().wait()
        return names[name]

    hanging = [f"hang{number}" for number in range(LOOKUPS_AT_ONCE)]
    hosts = ["a:81", "two.example", "private", "none", "b", *hanging, "c"]
    found = asyncio.run(resolve_all(resolver(lookup), hosts, within_s=0.2))
    passed = {host: [one.address for one in known] for host, known in found.items()}
    assert passed == {"a:81": ["8.8.8.8"], "b": ["8.8.4.4"]}
    assert asked == Counter(["a", "private", "none", "b", *hanging])
