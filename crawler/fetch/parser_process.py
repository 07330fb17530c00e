"""A process that parses one document at a time and may be killed: parsers in C heed no deadline of Python's.

`python -m crawler.fetch.parser_process CPU_SECONDS MEMORY_MB` reads documents from stdin and answers on stdout. Both
ways a message is a big-endian 32-bit length and that many bytes of JSON; a document's body follows its message. The
limits hold for each document: CPU by RLIMIT_CPU (the kernel ends the process), memory by RLIMIT_AS over what the
process had at its start.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from crawler.page import documents
from crawler.page.model import Page

LENGTH = struct.Struct(">I")


def packed(message: dict[str, Any]) -> bytes:
    """A message with its length before it."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


def page_to_json(page: Page) -> dict[str, Any]:
    """A page in JSON's types."""
    return asdict(page) | {"directives": sorted(page.directives)}


def page_from_json(values: dict[str, Any]) -> Page:
    """The page that `page_to_json` took apart."""
    values["directives"] = frozenset(values["directives"])
    values["robots_metas"] = [(name, content) for name, content in values["robots_metas"]]
    return Page(**values)


def serve(source: BinaryIO, sink: BinaryIO, cpu_s: float) -> None:
    """Parse documents until the source ends."""
    while len(prefix := source.read(LENGTH.size)) == LENGTH.size:
        request = json.loads(source.read(LENGTH.unpack(prefix)[0]))
        body = source.read(request.pop("size"))
        allow_cpu(cpu_s)
        page = documents.parse(body, **request)
        sink.write(packed(page_to_json(page)))
        sink.flush()


def allow_cpu(seconds: float) -> None:
    """Let this process use that many seconds more."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, resource.RLIM_INFINITY))


def limit_memory(megabytes: int) -> None:
    """Let this process take that much more memory than it has."""
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text(encoding="ascii").split()[0]) if statm.exists() else 0
    limit = pages * resource.getpagesize() + megabytes * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(cpu_s: str, memory_mb: str) -> None:
    """Entry point; the first document pays for no imports."""
    documents.parse(b"<html><p>warm</html>", "http://warm.invalid/", "text/html")
    limit_memory(int(memory_mb))
    serve(sys.stdin.buffer, sys.stdout.buffer, float(cpu_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
