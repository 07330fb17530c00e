"""The request log of the demo web: one JSON line a request, the witness in tests."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the server saw it."""

    time: float  # UTC epoch seconds at which its first byte was read
    method: str
    host: str  # the Host header in lower case, with its port
    address: str  # the local address it was made to
    path: str  # with its query, as asked
    status: int  # of the answer; 0 when the server did not answer in HTTP
    user_agent: str
    is_conditional: bool  # carried If-None-Match or If-Modified-Since
    at_once: int  # requests to this host that were being answered when it came, itself included
    connection: int  # number of the connection, from 1

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"

    @property
    def is_robots(self) -> bool:
        return self.path == "/robots.txt"


class RequestLog:
    """Appends to the log file. A line is written in one call, so that a reader never meets half of one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, request: Request) -> None:
        os.write(self._file, (json.dumps(asdict(request), separators=(",", ":")) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


def read_log(path: Path) -> list[Request]:
    """All requests so far, in the order of their arrival."""
    if not path.exists():
        return []
    with path.open() as lines:
        requests = [Request(**json.loads(line)) for line in lines]
    return sorted(requests, key=lambda request: request.time)
