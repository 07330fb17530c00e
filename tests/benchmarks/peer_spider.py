"""The peer's whole crawler, run by the interpreter of its own virtual environment: `peer_spider.py JOB.json`.

The job: crawl the given hosts to the end by their links, obey robots.txt, ask nothing twice, and write every exchange
as a request and a response record into a gzipped WARC file, as a Scrapy user would with warcio.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Request, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.resolver import dnscache
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


class WarcMiddleware:
    """Sees responses as they came, below Scrapy's own handling of content codings."""

    def __init__(self, path: str) -> None:
        self.output = Path(path).open("wb")  # noqa: SIM115 - closed when the spider closes
        self.writer = WARCWriter(self.output, gzip=True)
        self.records = 0

    @classmethod
    def from_crawler(cls, crawler: Any) -> WarcMiddleware:
        middleware = cls(crawler.settings["WARC_PATH"])
        crawler.signals.connect(middleware.close, signal=signals.engine_stopped)
        return middleware

    def process_response(self, request: Request, response: Response) -> Response:
        status = StatusAndHeaders(
            f"{response.status} OK", _pairs(response.headers), protocol=response.protocol or "HTTP/1.1"
        )
        answer = self.writer.create_warc_record(
            response.url, "response", payload=BytesIO(response.body), http_headers=status,
            warc_headers_dict={"WARC-IP-Address": str(response.ip_address)},
        )  # fmt: skip
        line = StatusAndHeaders(
            f"{request.method} {request.url} HTTP/1.1", _pairs(request.headers), is_http_request=True
        )
        asked = self.writer.create_warc_record(request.url, "request", http_headers=line)
        self.writer.write_request_response_pair(asked, answer)
        self.records += 1
        return response

    def close(self) -> None:
        self.output.close()


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, values in headers.items() for value in values]


class PeerSpider(Spider):  # type: ignore[misc]  # a table of cases is looser than the types
    name = "peer"

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__()
        self.job = job
        self.allowed_domains = job["hosts"]
        self.extractor = LinkExtractor(tags=("a", "area", "frame", "iframe"), attrs=("href", "src"), deny_extensions=[])
        self.pages: list[str] = []
        self.bytes = 0
        self.links = 0

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> PeerSpider:
        spider: PeerSpider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.started, signal=signals.engine_started)
        crawler.signals.connect(spider.stopped, signal=signals.engine_stopped)
        return spider

    def started(self) -> None:
        self.cpu_at_start, self.time_at_start = _cpu_s(), perf_counter()

    def stopped(self) -> None:
        figures = {
            "pages": self.pages,
            "bytes": self.bytes,
            "links": self.links,
            "cpu_s": _cpu_s() - self.cpu_at_start,
            "wall_s": perf_counter() - self.time_at_start,
        }
        Path(self.job["result"]).write_text(json.dumps(figures))

    async def start(self) -> AsyncIterator[Request]:
        for url in self.job["seeds"]:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Request]:
        self.pages.append(response.url)
        self.bytes += len(response.body)
        if isinstance(response, HtmlResponse):
            links = self.extractor.extract_links(response)
            self.links += len(links)
            for link in links:
                yield Request(link.url)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def settings(job: dict[str, Any]) -> dict[str, Any]:
    return {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 32,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REFERER_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "USER_AGENT": "peer",
        "DOWNLOADER_MIDDLEWARES": {WarcMiddleware: 895},
        "WARC_PATH": job["warc"],
    }


def main(job: dict[str, Any]) -> None:
    process = CrawlerProcess(settings(job))
    process.crawl(PeerSpider, job=job)
    for host, address in job["addresses"].items():
        dnscache[host] = address
    process.start()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
