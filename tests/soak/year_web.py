"""A web of 2,400 pages that live through a simulated year, as a protocol module: nothing is sent anywhere.

Pages appear, change at their own pace and vanish. The day of the simulation is in the file that YEAR_WEB_DAY names.
"""

from __future__ import annotations

import os
import random
import time
from functools import cache
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

from crawler.fetch.exchange import Exchange, IdleConnection, Request
from crawler.settings import FetchSettings

HOSTS = 24
PAGES = 100  # of a host
PERIODS = (1, 7, 30, 90, 1_000)  # days between two versions of a page
WORDS = tuple(f"word{n:03}" for n in range(600))


class YearWeb:
    """Answers for every host of the year's web."""

    def __init__(self, settings: FetchSettings) -> None:
        self._max_body = settings.max_body_bytes

    async def fetch(self, request: Request, connection: IdleConnection | None = None) -> Exchange:
        """The answer of this day."""
        status, etag, body = answer(request.url, today(), request.etag)
        head = f"HTTP/1.1 {status} Today\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        head += f'ETag: "{etag}"\r\n\r\n' if etag else "\r\n"
        fields = [tuple(line.split(": ", 1)) for line in head.split("\r\n")[1:] if line]
        now = time.time()
        return Exchange(
            f"GET {request.url} HTTP/1.1\r\n\r\n".encode(), request.address, now, now, 0.0, head.encode(), status,
            "Today", "HTTP/1.1", [(name.lower(), value) for name, value in fields], BytesIO(body), len(body),
        )  # fmt: skip


def today() -> int:
    """The day of the simulation."""
    return int(Path(os.environ["YEAR_WEB_DAY"]).read_text())


def host_name(number: int) -> str:
    return f"h{number:02}.year{number % 8}.test"


def answer(url: str, day: int, etag: str | None) -> tuple[int, str | None, bytes]:
    """Status, entity tag and body."""
    parts = urlsplit(url)
    number = parts.path.removeprefix("/p")
    if not number.isdigit() or int(number) >= PAGES:
        return 404, None, b"not here"
    host, page = int(parts.netloc[1:3]), int(number)
    born, died, period = life(host, page)
    if not born <= day < died:
        return 404, None, b"not here"
    version = day // period
    tag = f"{host}-{page}-{version}"
    if etag == f'"{tag}"':
        return 304, tag, b""
    return 200, tag, body(host, page, version)


@cache
def life(host: int, page: int) -> tuple[int, int, int]:
    """The day a page appears, the day it vanishes, and the days between its versions. The first page always is."""
    chance = random.Random(host * 1_000 + page)
    born = chance.randrange(1, 300) if page and chance.random() < 0.2 else 0
    died = born + chance.randrange(30, 300) if page and chance.random() < 0.15 else 1_000
    return born, died, chance.choice(PERIODS)


def body(host: int, page: int, version: int) -> bytes:
    """A page with links to its children, a few other pages, and words of its version."""
    chance = random.Random(f"{host} {page} {version}")
    children = [child for child in (2 * page + 1, 2 * page + 2) if child < PAGES]
    links = [f"/p{child}" for child in children]
    links += [f"http://{host_name(chance.randrange(HOSTS))}/p{chance.randrange(PAGES)}" for _ in range(4)]
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    text = " ".join(chance.choices(WORDS, k=300))
    return f"<html><title>{host} {page} {version}</title><body><p>{text}</p>{anchors}</body></html>".encode()
