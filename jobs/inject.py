"""Add URLs to the inbox of a lake: at any time, without the lock, without Spark. The next round takes them in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from crawler.page.filters import BAD_PORTS
from crawler.page.url import Refusal, UrlPolicy, host_port
from crawler.settings import Settings
from crawler.storage import Store
from crawler.tables.manifest import make_lake
from jobs.exits import BAD_USE, Stop
from jobs.words import visible

MAX_WARNINGS = 5
MAX_LIST_BYTES = 64 * 1024 * 1024


class Injected(NamedTuple):
    """One file in the inbox, how many lines it has, and the lines of input files that no round will admit."""

    path: str
    urls: int
    doubtful: list[str]


def inject(
    store: Store, settings: Settings, inputs: Sequence[str], remember: Mapping[str, object] | None = None
) -> Injected:
    """Write all URLs of the arguments into one new inbox file, of a new lake where there is nothing.

    `remember`: the settings, by `section.key`, that a new lake keeps. Raises Stop when an argument is neither file nor
    URL, TableError for a folder that is no lake and holds something.
    """
    policy = UrlPolicy(settings.url)

    def judged(text: str) -> object:
        found = policy.canonical(text)
        is_bad = not isinstance(found, Refusal) and host_port(found.host) in BAD_PORTS
        return Refusal("port") if is_bad else found

    doubtful: list[str] = []
    lines = [line for text in inputs for line in _lines_of(text, judged, doubtful)]
    if not lines:
        raise Stop(BAD_USE, "no URLs: the files hold none (one a line, # begins a comment)")
    make_lake(store, settings.lake.buckets, dict(remember or {}))
    path = f"inbox/{datetime.now(UTC):%Y%m%dT%H%M%S}Z-{uuid4().hex}.urls"
    store.put_new(path, ("\n".join(lines) + "\n").encode())
    return Injected(path, len(lines), doubtful)


def warnings(injected: Injected) -> list[str]:
    """What to tell about lines that are no URLs; the round notes each of them in `seeds` with its reason."""
    more = len(injected.doubtful) - MAX_WARNINGS
    return injected.doubtful[:MAX_WARNINGS] + ([f"... and {more:,} lines more"] if more > 0 else [])


def _lines_of(text: str, canonical: Callable[[str], object], doubtful: list[str]) -> Iterator[str]:
    if text.startswith("@"):
        yield from _lines_of_text(text[1:], fetched_list(text[1:]), canonical, doubtful)
    elif "://" in text:
        verdict = canonical(text)
        if isinstance(verdict, Refusal):
            raise Stop(BAD_USE, f"{text}: no URL that can be crawled ({verdict.reason})")
        yield text
    elif Path(text).is_file():
        yield from _lines_of_text(text, read_list(Path(text)), canonical, doubtful)
    else:
        raise Stop(
            BAD_USE,
            f"{text}: neither a file nor a URL (URLs begin with http:// or https://, lists on the web with @https://)",
        )


def _lines_of_text(name: str, text: str, canonical: Callable[[str], object], doubtful: list[str]) -> Iterator[str]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        verdict = canonical(line if "://" in line else f"https://{line}")
        if isinstance(verdict, Refusal):
            doubtful.append(f"{name}:{number}: {visible(line[:100])}: {verdict.reason}")
        yield line


def read_list(path: Path) -> str:
    """The text of a file of seeds. Raises Stop when it is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(BAD_USE, f"{path}: cannot be read as UTF-8 text ({error})") from error


def fetched_list(url: str) -> str:
    """The text of a seed list on the web, 64 MiB at most. Raises Stop when it cannot be had.

    The person who starts the crawl names the address, so it is asked as any tool of theirs would, proxies included.
    """
    import requests

    try:
        with requests.get(url, timeout=(10, 60), stream=True) as response:
            response.raise_for_status()
            body = response.raw.read(MAX_LIST_BYTES + 1, decode_content=True)
        text: str = body.decode("utf-8-sig")
    except (requests.RequestException, UnicodeDecodeError) as error:
        raise Stop(BAD_USE, f"{url}: the seed list cannot be had ({error})") from error
    if len(body) > MAX_LIST_BYTES:
        raise Stop(
            BAD_USE, f"{url}: the seed list is longer than {MAX_LIST_BYTES:,} bytes; save it and inject the file"
        )
    return text
