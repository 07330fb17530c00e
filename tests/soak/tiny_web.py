"""A web of small pages as a protocol module: every path is a page of its own, and nothing is sent anywhere."""

from __future__ import annotations

import time
from io import BytesIO

from crawler.fetch.exchange import Exchange, IdleConnection, Request
from crawler.settings import FetchSettings

FIELDS = [("content-type", "text/html")]


class TinyWeb:
    """Answers with a page that says its own URL; there are no robots files."""

    def __init__(self, settings: FetchSettings) -> None:
        self._max_body = settings.max_body_bytes

    async def fetch(self, request: Request, connection: IdleConnection | None = None) -> Exchange:
        """The page."""
        status = 404 if request.url.endswith("/robots.txt") else 200
        body = f"<html><title>{request.url}</title><p>{request.url} {'word ' * 60}</html>".encode()
        head = f"HTTP/1.1 {status} Here\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        now = time.time()
        return Exchange(
            f"GET {request.url} HTTP/1.1\r\n\r\n".encode(), request.address, now, now, 0.0, head, status, "Here",
            "HTTP/1.1", FIELDS, BytesIO(body), len(body),
        )  # fmt: skip
