"""The demo web as a whole: which hosts there are, where they are served, and what each answers."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from tests.web import corners
from tests.web.answers import Answer, Visit, World
from tests.web.corner_bodies import bomb
from tests.web.corner_robots import scroll
from tests.web.pages import Country
from tests.web.sites import Scale
from tests.web.words import Prose

ALLOWED = "127.77.0.0/16"
"""What a crawl of the demo web must allow; everything else that resolves to loopback is a trap."""
TRAP = "127.0.0.1"
_SPECIAL = {"inside.test": TRAP, "inside.turns.test": TRAP, "closed.test": "127.77.9.9"}


class Web:
    """Answers visits, and counts them, since some pages change."""

    def __init__(self, seed: int, scale: Scale, port: int) -> None:
        self.world = World(Prose(seed), port)
        self.scale = scale
        self.country = Country(self.world, scale)
        self._visits: Counter[tuple[str, str]] = Counter()

    @cached_property
    def addresses(self) -> dict[str, str]:
        """Host name to the address of its server."""
        found = {site.host: site.address for site in self.country.sites.values()}
        if self.scale.corners:
            for number, host in enumerate(corners.HOSTS, 1):
                found[host] = _SPECIAL.get(host, f"127.77.2.{number}")
        return found

    def listening(self) -> list[str]:
        """The addresses to listen on: those of all hosts but the closed one, and the trap."""
        return sorted({*self.addresses.values(), TRAP} - {_SPECIAL["closed.test"]})

    def seeds(self) -> list[str]:
        """The home of one host in each registered domain; the corners' hosts all."""
        domains = {host.split(".", host.count(".") - 1)[-1]: host for host in reversed(self.country.sites)}
        hosts = [host for host in self.country.sites if host in domains.values()]
        if self.scale.corners:
            hosts += [host for host in corners.HOSTS if host != "inside.turns.test"]
        return [self.world.url(host) for host in hosts]

    def hosts_file(self) -> str:
        """All names in the format of hosts(5)."""
        return "".join(f"{address}\t{host}\n" for host, address in self.addresses.items())

    def warm_up(self) -> None:
        """Makes beforehand what would hold up other answers, and with them the clock of the log."""
        if self.scale.corners:
            bomb()
            scroll()

    def answer(self, name: str, address: str, path: str, headers: dict[str, str]) -> Answer:
        """The answer to a request for a host name (without port) that came in on an address."""
        generation = self._visits[name, path]
        self._visits[name, path] += 1
        visit = Visit(self.world, name, path, headers, generation)
        if self.addresses.get(name) != address:
            return Answer(421, b"No such host here.\n", "text/plain")
        return self.country.answer(visit) if name in self.country.sites else corners.answer(visit)
