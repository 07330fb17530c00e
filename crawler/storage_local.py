"""A lake in a local folder: what was reported as written survives a kill and a power cut."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

import pyarrow as pa

from crawler.storage import OPEN_SUFFIX, ObjectWriter, Store, checked, normal_uri

BUFFER_BYTES = 1024 * 1024
UNFIT = re.compile(r"%[0-9A-Fa-f]{2}|[\\\[\]^|\x00-\x1f\x7f\ud800-\udfff]")
"""What deltalake makes another path of, or fails on: it takes the path of a table for part of a URL."""


class LocalStore(Store):
    """A folder."""

    def __init__(self, uri: str) -> None:
        self.uri = normal_uri(uri)
        unfit = UNFIT.search(self.uri)
        if unfit:
            raise ValueError(
                f"lake {self.uri!r}: its path holds {unfit[0]!r}, with which its tables could not be found again. "
                "Take a folder whose path has no control characters, no bytes that are no UTF-8, none of \\ [ ] ^, "
                "no | and no % before two hexadecimal digits; all else is allowed, spaces and quotes too"
            )

    def _full(self, path: str) -> Path:
        return Path(self.uri, checked(path))

    def put_new(self, path: str, data: bytes) -> bool:
        target = self._full(path)
        unfinished = self._write_unfinished(target, data)
        try:
            os.link(unfinished, target)
        except FileExistsError:
            return False
        finally:
            unfinished.unlink(missing_ok=True)
        sync_folder(target.parent)
        return True

    def put(self, path: str, data: bytes) -> None:
        target = self._full(path)
        unfinished = self._write_unfinished(target, data)
        unfinished.replace(target)
        sync_folder(target.parent)

    def _write_unfinished(self, target: Path, data: bytes) -> Path:
        make_folder(target.parent)
        unfinished = target.with_name(f"{target.name}.{uuid4().hex[:8]}{OPEN_SUFFIX}")
        try:
            with unfinished.open("xb") as file:
                file.write(data)
                sync_file(file)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        return unfinished

    def read(self, path: str) -> bytes:
        return self._full(path).read_bytes()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._full(path).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), length, offset)

    def size(self, path: str) -> int:
        return self._full(path).stat().st_size

    def unfinished(self, prefix: str) -> list[str]:
        return sorted(path for path in self._walk(prefix) if path.endswith(OPEN_SUFFIX))

    def empty_folders(self, prefix: str) -> list[str]:
        below = ((folder, [*inner, *names]) for folder, inner, names in os.walk(self._full(prefix)))
        found = (str(Path(folder).relative_to(self.uri)) for folder, held in below if not held)
        return sorted(path for path in found if path != prefix)

    def list(self, prefix: str) -> list[str]:
        return sorted(path for path in self._walk(prefix) if not path.endswith(OPEN_SUFFIX))

    def top(self) -> Sequence[str]:
        try:
            return [one.name for one in Path(self.uri).iterdir() if not one.name.endswith(OPEN_SUFFIX)]
        except FileNotFoundError:
            return []

    def _walk(self, prefix: str) -> Iterator[str]:
        """All files in the folder and below."""
        root = self._full(prefix) if prefix else Path(self.uri)
        folders = ((Path(folder).relative_to(self.uri), names) for folder, _, names in os.walk(root))
        return (str(folder / name) for folder, names in folders for name in names)

    def remove_folder(self, path: str) -> None:
        with suppress(OSError):  # it is not there, or somebody has just put something in
            self._full(path).rmdir()

    def modified(self, path: str) -> float:
        return self._full(path).stat().st_mtime

    def delete(self, path: str) -> None:
        self._full(path).unlink(missing_ok=True)

    def open_writer(self, path: str) -> ObjectWriter:
        return LocalWriter(path, self._full(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.OSFile(str(self._full(path)), mode="r")


class LocalWriter:
    """Writes `NAME.open`; `close` makes it durable and gives it its name."""

    def __init__(self, path: str, target: Path) -> None:
        make_folder(target.parent)
        self.path = path
        self._target = target
        self._unfinished = target.with_name(target.name + OPEN_SUFFIX)
        self._file: IO[bytes] = self._unfinished.open("xb", buffering=BUFFER_BYTES)
        self._written = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._written += len(data)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        sync_file(self._file)
        self._file.close()
        self._unfinished.rename(self._target)
        sync_folder(self._target.parent)

    def abort(self) -> None:
        """Leave nothing, also when the disk is full: what is buffered is not written any more."""
        self._unfinished.unlink(missing_ok=True)
        with suppress(OSError):  # the flush of the buffer; the file has no name any more
            self._file.close()


def make_folder(folder: Path) -> None:
    """Create the folder and its parents so that they survive a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except (FileExistsError, FileNotFoundError) as error:
        raise NotADirectoryError(errno.ENOTDIR, "no folder, and none can be made there", str(folder)) from error
    sync_folder(folder.parent)


def sync_file(file: IO[bytes]) -> None:
    """Wait until the content is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in the folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
