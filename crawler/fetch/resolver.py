"""Host names to vetted addresses: host map first, then the system's resolver; answers are remembered until they expire.

What leaves here may be connected to. A host whose every address is refused has no address and a reason.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from crawler.fetch.addresses import AddressPolicy, address_policy
from crawler.records import KnownAddress
from crawler.settings import FetchSettings

Lookup = Callable[[str], Awaitable[list[str]]]
NEGATIVE_TTL_S = 60.0
MAX_ADDRESSES = 16
LOOKUPS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Resolved:
    """The addresses of a host that may be connected to; when there is none, `refused` or `error` says why."""

    addresses: tuple[KnownAddress, ...] = ()
    refused: str | None = None
    error: str | None = None


def parse_host_map(text: str) -> dict[str, list[str]]:
    """A file in hosts(5) format as host name -> addresses in file order; lines without a valid address are ignored."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        address, *names = line.split("#", 1)[0].split() or [""]
        if not _is_literal(address):
            continue
        for name in names:
            addresses = found.setdefault(name.lower().rstrip("."), [])
            if address not in addresses:
                addresses.append(address)
    return found


def name_of(host: str) -> str:
    """The name or literal in a host key: without port, brackets and final dot."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.rstrip(".").lower()


@dataclass(slots=True)
class SystemLookup:
    """getaddrinfo in threads of its own, so that hanging name servers cannot use up the loop's other threads."""

    timeout_s: float = 10.0
    threads: int = LOOKUPS_AT_ONCE
    _pool: ThreadPoolExecutor | None = field(default=None, init=False)

    async def __call__(self, name: str) -> list[str]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="dns")
        answer = asyncio.get_running_loop().run_in_executor(self._pool, _getaddrinfo, name)
        return await asyncio.wait_for(answer, self.timeout_s)


class Resolver:
    """Resolves each host name once per `ttl_s` and keeps only the addresses that the policy lets pass."""

    def __init__(
        self,
        host_map: Mapping[str, list[str]],
        policy: AddressPolicy,
        ttl_s: float,
        clock: Callable[[], float],
        lookup: Lookup | None = None,
    ) -> None:
        self._host_map = host_map
        self._policy = policy
        self._ttl_s = ttl_s
        self._clock = clock
        self._lookup = lookup or SystemLookup()
        self._known: dict[str, tuple[float, Resolved]] = {}
        self._asked: dict[str, asyncio.Task[Resolved]] = {}

    def seed(self, host: str, addresses: Iterable[KnownAddress]) -> None:
        """Take over what an earlier round knew of a host; expired answers are dropped, the others vetted again."""
        name = name_of(host)
        if name in self._host_map:
            return
        fresh = tuple(known for known in addresses if known.expires_at > self._clock())
        vetted = tuple(known for known in fresh if self._policy.refuse(known.address) is None)
        if vetted:
            self._known[name] = (min(known.expires_at for known in vetted), Resolved(vetted))

    async def resolve(self, host: str) -> Resolved:
        """The vetted addresses of `host` (a host key, port allowed). Never raises for what a name server answers."""
        name = name_of(host)
        known = self._known.get(name)
        if known is not None and known[0] > self._clock():
            return known[1]
        task = self._asked.get(name)
        if task is None:
            task = self._asked[name] = asyncio.ensure_future(self._ask(name))
            task.add_done_callback(lambda _: self._asked.pop(name, None))
        return await asyncio.shield(task)

    async def _ask(self, name: str) -> Resolved:
        try:
            answers = await self._addresses(name)
        except (TimeoutError, OSError, UnicodeError) as error:
            return self._keep(name, Resolved(error=_reason(error)), NEGATIVE_TTL_S)
        return self._keep(name, self._vet(answers), self._ttl_s)

    async def _addresses(self, name: str) -> list[str]:
        if name in self._host_map:
            return self._host_map[name]
        if _is_literal(name):
            return [name]
        if not name or not name.isascii():
            raise UnicodeError("not an A-label host name")
        return await self._lookup(name)

    def _vet(self, answers: list[str]) -> Resolved:
        distinct = list(dict.fromkeys(answers))[:MAX_ADDRESSES]
        refusals = {address: self._policy.refuse(address) for address in distinct}
        expires_at = self._clock() + self._ttl_s
        passed = tuple(KnownAddress(ip, expires_at) for ip, refusal in refusals.items() if refusal is None)
        if passed:
            return Resolved(passed)
        refused = next((refusal for refusal in refusals.values() if refusal), None)
        return Resolved(refused=refused) if refused else Resolved(error="no_address")

    def _keep(self, name: str, resolved: Resolved, ttl_s: float) -> Resolved:
        self._known[name] = (self._clock() + ttl_s, resolved)
        return resolved


def resolver_for(settings: FetchSettings, clock: Callable[[], float] = time.time) -> Resolver:
    """The resolver of the settings; the host map is read where it is made."""
    host_map = parse_host_map(Path(settings.host_map).read_text(encoding="utf-8")) if settings.host_map else {}
    return Resolver(host_map, address_policy(settings), settings.dns_ttl_s, clock)


async def resolve_all(resolver: Resolver, hosts: Iterable[str], within_s: float) -> dict[str, tuple[KnownAddress, ...]]:
    """The addresses of those hosts (host keys) that have any, as far as name servers answer within so many seconds."""
    found: dict[str, tuple[KnownAddress, ...]] = {}
    waiting = iter(hosts)

    async def ask() -> None:
        for host in waiting:
            if addresses := (await resolver.resolve(host)).addresses:
                found[host] = addresses

    with suppress(TimeoutError):
        async with asyncio.timeout(within_s), asyncio.TaskGroup() as group:
            for _ in range(LOOKUPS_AT_ONCE):
                group.create_task(ask())
    return found


def _getaddrinfo(name: str) -> list[str]:
    answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


def _is_literal(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, UnicodeError):
        return "invalid_name"
    if isinstance(error, socket.gaierror):
        return {socket.EAI_NONAME: "not_found", socket.EAI_AGAIN: "try_again"}.get(error.errno or 0, "lookup_failed")
    return "lookup_failed"
