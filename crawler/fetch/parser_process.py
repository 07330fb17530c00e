"""A process that reads one document at a time and may be killed: parsers in C heed no deadline of Python's.

`python -m crawler.fetch.parser_process SPEC` takes documents from stdin and answers on stdout. SPEC is JSON: the
bounds, the fingerprints' scheme, and the limits. Both ways a message is a big-endian 32-bit length and that many bytes
of JSON; a document's body follows its message, as it was sent.

The limits hold for each document: CPU by RLIMIT_CPU (the kernel ends the process), memory by RLIMIT_AS over what the
process holds when it begins. An answer says when memory was not enough, or when the process has kept so much of it that
it had better be replaced.
"""

from __future__ import annotations

import ctypes
import json
import resource
import struct
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from crawler.page.content import Bounds, Content, ContentReader, Document
from crawler.page.fingerprint import Fingerprint, Fingerprinter
from crawler.page.model import FAILED, Page

LENGTH = struct.Struct(">I")
_MEGABYTE = 1 << 20
_SIZE, _RESIDENT = 0, 1  # places in /proc/self/statm


def packed(message: dict[str, Any]) -> bytes:
    """A message with its length before it."""
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    return LENGTH.pack(len(body)) + body


def content_to_json(content: Content) -> dict[str, Any]:
    """A content in JSON's types."""
    values = asdict(content)
    if content.page is not None:
        values["page"]["directives"] = sorted(content.page.directives)
    if content.fingerprint is not None and content.fingerprint.signature is not None:
        values["fingerprint"]["signature"] = content.fingerprint.signature.hex()
    return values


def content_from_json(values: dict[str, Any]) -> Content:
    """The content that `content_to_json` took apart."""
    page, fingerprint = values["page"], values["fingerprint"]
    if page is not None:
        page["directives"] = frozenset(page["directives"])
        page["robots_metas"] = [(name, content) for name, content in page["robots_metas"]]
        values["page"] = Page(**page)
    if fingerprint is not None:
        signature = fingerprint["signature"]
        fingerprint["signature"] = bytes.fromhex(signature) if signature is not None else None
        values["fingerprint"] = Fingerprint(**fingerprint)
    return Content(**values)


def spec_of(reader: ContentReader, cpu_s: float, memory_mb: int) -> str:
    """The argument of a process that reads as `reader` does, under these limits for each document."""
    scheme = reader.prints.spec()
    return json.dumps({"bounds": asdict(reader.bounds), "prints": scheme, "cpu_s": cpu_s, "memory_mb": memory_mb})


def serve(source: BinaryIO, sink: BinaryIO, reader: ContentReader, cpu_s: float, memory_bytes: int) -> None:
    """Read documents until the source ends."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the C library's, where it is GNU's
    start_size, start = _memory(_SIZE), _memory(_RESIDENT)
    while len(prefix := source.read(LENGTH.size)) == LENGTH.size:
        request = json.loads(source.read(LENGTH.unpack(prefix)[0]))
        is_scan, size = request.pop("is_scan"), request.pop("size")
        allow_cpu(cpu_s)
        # Room that earlier documents left in the heap counts for this one.
        kept = max(0, _memory(_RESIDENT) - start)
        resource.setrlimit(resource.RLIMIT_AS, (start_size + kept + memory_bytes, resource.RLIM_INFINITY))
        answer = _answer(source, size, request, reader, is_scan)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if trim is not None and _memory(_RESIDENT) > start + memory_bytes // 8:
            trim(0)
        is_large = _memory(_RESIDENT) > start + memory_bytes // 4 or _memory(_SIZE) > start_size + memory_bytes // 2
        answer["is_last"] = is_large or answer["content"] is None
        sink.write(packed(answer))
        sink.flush()


def _answer(
    source: BinaryIO, size: int, request: dict[str, Any], reader: ContentReader, is_scan: bool
) -> dict[str, Any]:
    """The content of a document as JSON; None when memory was not enough."""
    try:
        document = Document(source.read(size), **request)
        content = reader.scan(document) if is_scan else reader.read(document)
        page = content.page
        if page is not None and page.parse_status == FAILED and _is_memory(page.reason or ""):
            return {"content": None}
        return {"content": content_to_json(content)}
    except MemoryError:
        return {"content": None}


def _is_memory(reason: str) -> bool:
    """Whether a parser in C failed because it got no memory; its own words for it are few."""
    return "memory" in reason.lower() or reason.startswith("SelectolaxError")


def _memory(place: int) -> int:
    """Bytes of this process: all that it may address, or what is in memory."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text(encoding="ascii").split()[place]) * resource.getpagesize() if statm.exists() else 0


def allow_cpu(seconds: float) -> None:
    """Let this process use that many seconds more."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, resource.RLIM_INFINITY))


def main(spec: str) -> None:
    """Entry point; the first document pays for no imports."""
    values = json.loads(spec)
    reader = ContentReader(Bounds(**values["bounds"]), Fingerprinter.of_spec(values["prints"]))
    reader.read(Document(b"<html><p>" + b"warm " * 100, "http://warm.invalid/", "text/html"))
    serve(sys.stdin.buffer, sys.stdout.buffer, reader, values["cpu_s"], values["memory_mb"] * _MEGABYTE)


if __name__ == "__main__":
    main(*sys.argv[1:])
