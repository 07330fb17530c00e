"""Other people's readers and validators accept every kind of record we write."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fastwarc import ArchiveIterator as FastIterator
from fastwarc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from crawler.storage import Store
from tests.fetch.warc_reading import assert_rules, read_file
from tests.fetch.warc_samples import CHUNKED, EVERY_KIND, write


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


@pytest.fixture
def mixed(store: Store, tmp_path: Path) -> Path:
    """A file with every kind of record."""
    write(store, *EVERY_KIND)
    return tmp_path / "warc/X.warc.gz"


VALIDATORS: dict[str, Callable[[Path], list[str]]] = {
    "gzip -t": lambda path: ["gzip", "-t", str(path)],
    "warcio check": lambda path: [str(Path(sys.executable).with_name("warcio")), "check", "-v", str(path)],
    "fastwarc check": lambda path: [str(Path(sys.executable).with_name("fastwarc")), "check", str(path)],
}


@pytest.mark.parametrize("command", VALIDATORS.values(), ids=VALIDATORS.keys())
def test_validators_accept_every_kind_of_record(mixed: Path, command: Callable[[Path], list[str]]) -> None:
    done = subprocess.run(command(mixed), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "digest failed" not in (done.stdout + done.stderr).lower()


def test_other_readers_see_the_same_records(mixed: Path) -> None:
    ours = read_file(mixed.read_bytes())
    assert_rules(ours)
    with mixed.open("rb") as file:
        theirs = [(r.rec_type, r.rec_headers.get_header("WARC-Record-ID")) for r in ArchiveIterator(file)]
    with mixed.open("rb") as file:
        fast = [(record.record_id, record.verify_block_digest()) for record in FastIterator(file, parse_http=False)]
    with mixed.open("rb") as file:
        payloads = [record.verify_payload_digest() for record in FastIterator(file, WarcRecordType.response)]
    assert theirs == [(record.type, record["WARC-Record-ID"]) for record in ours]
    assert fast == [(record["WARC-Record-ID"], True) for record in ours]
    is_crlf = [not re.search(rb"[^\r]\n", record.head) for record in ours if record.type == "response"]
    assert payloads == is_crlf  # FastWARC takes a head that ends with a lone LF for one without end
    assert Counter(is_crlf) == {True: 5, False: 3}


def test_warcio_decodes_what_was_chunked_and_gzipped(store: Store, tmp_path: Path) -> None:
    write(store, CHUNKED)
    with (tmp_path / "warc/X.warc.gz").open("rb") as file:
        [content] = [r.content_stream().read() for r in ArchiveIterator(file) if r.rec_type == "response"]
    assert content == b"<p>packed</p>" * 50
