"""A stock web server on loopback for the sites of the corpus: nginx with a configuration and log of our own.

Its access log is the witness: one JSON object a request.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.real_input.corpus import Site, unpacked

START_TIMEOUT_S = 10.0


class Request(NamedTuple):
    """A line of the access log. `at`: when the response was finished, epoch seconds; `took_s`: how long it took."""

    at: float
    took_s: float
    host: str
    address: str
    uri: str
    status: int
    agent: str
    if_none_match: str
    if_modified_since: str

    @property
    def is_conditional(self) -> bool:
        return bool(self.if_none_match or self.if_modified_since)


@dataclass(frozen=True)
class Origin:
    """A running server. Its hosts file maps every host name to its address; URLs carry the port."""

    folder: Path
    port: int
    addresses: Mapping[str, str] = field(default_factory=dict)

    @property
    def hosts_file(self) -> Path:
        return self.folder / "hosts"

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def requests(self) -> list[Request]:
        """The access log so far, in order."""
        lines = (self.folder / "access.log").read_text().splitlines()
        return [Request(**json.loads(line)) for line in lines]

    def forget(self) -> None:
        """Empty the log; nginx appends, so the next request is the first."""
        (self.folder / "access.log").write_text("")


@contextmanager
def serving(
    sites: Sequence[Site], folder: Path, gzip: bool = True, others: Mapping[str, str] | None = None
) -> Iterator[Origin]:
    """Serve the sites until the block is left. `others`: further host names with their loopback addresses, all of which
    show the pages of the last site."""
    addresses = {site.host: f"127.0.1.{at + 1}" for at, site in enumerate(sites)}
    everyone = {**addresses, **(others or {})}
    origin = Origin(folder, _free_port(addresses[sites[0].host]), everyone)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "access.log").touch()
    origin.hosts_file.write_text("".join(f"{address} {host}\n" for host, address in everyone.items()))
    (folder / "nginx.conf").write_text(_configuration(sites, origin, gzip))
    server = subprocess.Popen(
        [_nginx(), "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"], stdin=subprocess.DEVNULL
    )
    try:
        _wait_for(origin, addresses[sites[0].host], server)
        yield origin
    finally:
        server.terminate()
        server.wait(timeout=START_TIMEOUT_S)


def _nginx() -> Path:
    return unpacked(("nginx",))[1] / "usr" / "sbin" / "nginx"


def _free_port(address: str) -> int:
    with socket.create_server((address, 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_for(origin: Origin, address: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection((address, origin.port), 1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nginx does not answer: {(origin.folder / 'error.log').read_text()[-2000:]}")


def _configuration(sites: Sequence[Site], origin: Origin, gzip: bool) -> str:
    fields = ", ".join(f'"{name}": {variable}' for name, variable in _LOGGED.items())
    own = {site.host: origin.addresses[site.host] for site in sites}
    further = sorted({*origin.addresses.values()} - {*own.values()})
    servers = [_server(site, origin, [own[site.host]] + (further if site is sites[-1] else [])) for site in sites]
    return _FRAME.format(
        user="user root;" if os.geteuid() == 0 else "",
        folder=origin.folder,
        fields=fields,
        gzip="on" if gzip else "off",
        servers="\n".join(servers),
    )


def _server(site: Site, origin: Origin, addresses: Sequence[str]) -> str:
    listens = " ".join(f"listen {address}:{origin.port} backlog=1024;" for address in addresses)
    rule = "location = /robots.txt { return 404; }"
    if site.robots is not None:
        robots = origin.folder / f"{site.host}.robots.txt"
        robots.write_text(site.robots)
        rule = f"location = /robots.txt {{ alias {robots}; }}"
    return f"  server {{ {listens} server_name {site.host}; root {site.root}; {rule} }}"


_LOGGED = {
    "at": "$msec",
    "took_s": "$request_time",
    "host": '"$host"',
    "address": '"$server_addr"',
    "uri": '"$request_uri"',
    "status": "$status",
    "agent": '"$http_user_agent"',
    "if_none_match": '"$http_if_none_match"',
    "if_modified_since": '"$http_if_modified_since"',
}

_FRAME = """daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  log_format witness escape=json '{{ {fields} }}';
  access_log {folder}/access.log witness;
  types {{ text/html html htm; text/css css; text/plain txt; application/javascript js; image/png png;
          image/svg+xml svg; application/xml xml; }}
  default_type application/octet-stream;
  etag on;
  gzip {gzip};
  gzip_types text/plain;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{servers}
}}
"""
