"""The crawl of the cluster tests: two rounds of a small web, once on this machine alone and again on the cluster."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crawler.page.url import host_key, registered_domain
from crawler.settings import RoundSettings, SegmentSettings, Settings
from crawler.settings_text import toml_value
from crawler.storage import Store
from crawler.tables.ledger import Ledger, State
from crawler.transforms.select import Server, group_by_server
from jobs.package import ENVIRONMENT, package
from tests.cluster.processes import Cluster, Submitted, plain_environ, wait_until
from tests.spark.crawled import settings_for
from tests.spark.driver import ROOT, now_of
from tests.web import DemoWeb, Request, Scale
from tests.web.sites import PORTAL
from tests.web.web import Web

SMALL = Scale(pages=60, hosts=13, words=300, corners=False)
SEEDS = 6  # so few that the second round, too, finds URLs which nobody knew
DELAY_S = 0.8  # so long that what goes wrong in a fetch stage has time to
SLACK_S = 0.15  # between the start of a request and its line in the log, on a machine that has others to serve
SEGMENT_URLS = 4
PARTITIONS = 2
REQUESTS = 6  # that the web sees of a fetch stage before something happens to it
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "700m",
    "spark.executor.memory": "600m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
PLAIN_PLANS = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
"""As in an embedded session: small rounds end sooner. The undisturbed crawl of the cluster runs without."""


@dataclass(frozen=True)
class Packed:
    """What `make package` makes, and its environment unpacked, as on the machine of the driver."""

    dist: Path
    environment: Path

    @classmethod
    def make(cls, folder: Path) -> Packed:
        package(folder / "dist")
        shutil.unpack_archive(folder / "dist" / ENVIRONMENT, folder / "env")
        return cls(folder / "dist", folder / "env")

    @property
    def python(self) -> str:
        return str(self.environment / "bin" / "python")


@dataclass(frozen=True)
class Rounds:
    """The web, the settings that a crawl of it needs, and the crawl on this machine: after one round and after two."""

    web: DemoWeb
    sets: list[str]
    after_one: Path
    after_two: Path
    asked: list[Request]
    """Of the second round."""

    def requests_after(self, seen: int) -> list[Request]:
        return self.web.requests()[seen:]


def port_for_two_tasks() -> int:
    """A free port for the web with which a plan has URLs for both fetch partitions: hosts are placed by a hash of their
    domains' hosts, and of ports."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        servers = [
            Server(host_key(f"{host}:{port}"), registered_domain(host), host, (address,))
            for host, address in Web(1, SMALL, port).addresses.items()
        ]
        if len({*group_by_server(servers, PARTITIONS, 50).partitions.tolist()}) == PARTITIONS:
            return port


def crawl_here(folder: Path, web: DemoWeb, packed: Packed) -> Rounds:
    """Inject with the packed command, then two rounds with an embedded Spark."""
    sets, one, two = sets_for(web), folder / "after-one", folder / "after-two"
    homes = [web.url(host) for host in web.web.addresses if host != PORTAL]
    orbweaver = str(packed.environment / "bin" / "orbweaver")
    command = [orbweaver, "inject", *homes[:SEEDS], "--lake", str(two)]
    subprocess.run(command, check=True, env=plain_environ(folder), cwd=folder, timeout=60)
    shutil.copytree(two, folder / "injected")
    command = [sys.executable, "-m", "jobs.cli", "round", "--lake", str(two), *sets, "--set", "spark.master=local[2]"]
    subprocess.run([*command, "--at", at(1)], check=True, cwd=ROOT, timeout=300)
    shutil.copytree(two, one)
    seen = len(web.requests())
    subprocess.run([*command, "--at", at(2)], check=True, cwd=ROOT, timeout=300)
    return Rounds(web, sets, one, two, web.requests()[seen:])


def sets_for(web: DemoWeb) -> list[str]:
    """The options for what differs from the defaults."""
    settings = replace(
        settings_for(web, delay_s=DELAY_S, max_crawl_delay_s=1.0),
        segment=SegmentSettings(max_urls=SEGMENT_URLS), round=RoundSettings(time_limit_s=120.0, partitions=PARTITIONS),
    )  # fmt: skip
    usual: dict[str, dict[str, Any]] = asdict(Settings())
    given = [
        f"{section}.{key}={toml_value(value)}"
        for section, values in asdict(settings).items()
        for key, value in values.items()
        if value != usual[section][key]
    ]
    return [word for one in given for word in ("--set", one)]


def at(number: int) -> str:
    """The scheduling time of a round, for `--at`."""
    return datetime.fromtimestamp(now_of(number), UTC).isoformat()


def is_at(lake: Path, number: int, state: State) -> bool:
    """True when the newest row of the ledger says so."""
    newest = Ledger(Store.open(str(lake))).newest()
    return bool(newest) and (newest[-1].round, newest[-1].state) == (number, state)


@dataclass(frozen=True)
class Place:
    """Where tests submit, what, and what it is compared with."""

    cluster: Cluster
    packed: Packed
    rounds: Rounds

    def lake_after_one(self, folder: Path) -> Path:
        """A copy of the crawl after its first round."""
        return Path(shutil.copytree(self.rounds.after_one, folder / "lake"))


@dataclass
class Submission:
    """A round on the cluster, as SUBMIT.md says, while it runs."""

    lake: Path
    rounds: Rounds
    driver: Submitted
    seen: int

    @classmethod
    def of(cls, place: Place, lake: Path, number: int, conf: dict[str, str] | None = None) -> Submission:
        """Submit the round with the unpacked environment, which all machines see."""
        packed, rounds = place.packed, place.rounds
        python = {"spark.pyspark.python": packed.python, "spark.pyspark.driver.python": packed.python}
        words = [*options(CONF | PLAIN_PLANS | python | (conf or {})), str(packed.dist / "crawl_round.py")]
        words += ["--lake", str(lake), "--at", at(number), *rounds.sets]
        seen, log = len(rounds.web.requests()), lake.parent / f"{lake.name}.log"
        return cls(lake, rounds, place.cluster.submit(words, log, {"ORBWEAVER_DEBUG": "1"}), seen)

    def requests(self) -> list[Request]:
        """What the web was asked since."""
        return self.rounds.requests_after(self.seen)

    def wait_for(self, is_so: Callable[[], bool], what: str) -> None:
        def is_so_or_ended() -> bool:
            assert self.driver.process.poll() is None, f"the driver ended before {what}: {self.driver.said()[-3_000:]}"
            return is_so()

        wait_until(is_so_or_ended, what)

    def wait_for_fetching(self, number: int, requests: int = REQUESTS) -> None:
        """Until the plan stands and the web has seen some requests."""
        self.wait_for(lambda: is_at(self.lake, number, State.PLANNED), "the plan")
        self.wait_for(lambda: len(self.requests()) >= requests, f"{requests} requests")


def options(conf: dict[str, str]) -> Sequence[str]:
    """`--conf` for each."""
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
