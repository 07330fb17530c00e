"""One small class over the places a lake can be: a local folder or a bucket on S3.

Every write is all or nothing: a name becomes visible when the whole content is there, and never before. Paths are
relative to the root of the lake, with `/`. Names that end in `.open` are writes that did not finish; nobody lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa

OPEN_SUFFIX = ".open"
S3_SCHEMES = frozenset({"s3", "s3a"})


class ObjectWriter(Protocol):
    """A file being written: it appears under `path` at `close`, or not at all."""

    path: str

    def write(self, data: bytes) -> None: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Upload(NamedTuple):
    """A file that was begun in parts and not finished: its path, the upload's id, and when it began (epoch seconds)."""

    path: str
    id: str
    started: float


class Store(ABC):
    """The files of a lake. Picklable: holds the URI and no credentials; clients are made where they are used."""

    uri: str

    @staticmethod
    def open(uri: str) -> Store:
        """The store behind a local path, `file://`, `s3://` or `s3a://` URI; ValueError for any other scheme."""
        from crawler.storage_local import LocalStore
        from crawler.storage_s3 import BucketStore

        scheme = urlsplit(uri).scheme if ":/" in uri else ""
        if scheme in S3_SCHEMES:
            return BucketStore(uri)
        if scheme in {"", "file"}:
            return LocalStore(uri)
        raise ValueError(f"lake {uri!r}: scheme {scheme!r} is not one of file, s3, s3a")

    def uri_of(self, path: str) -> str:
        """What Spark and Arrow call the file: a plain absolute path when local, else `s3a://`."""
        return f"{self.uri.rstrip('/')}/{checked(path)}" if path else self.uri

    def relative(self, uri: str) -> str:
        """The path inside this lake of a URI as Spark or Delta write it; ValueError when it lies elsewhere."""
        full, root = normal_uri(uri), self.uri.rstrip("/") + "/"
        if not full.startswith(root):
            raise ValueError(f"{uri!r} is not inside the lake {self.uri!r}")
        return full[len(root) :]

    @abstractmethod
    def put_new(self, path: str, data: bytes) -> bool:
        """Create the file whole; False, and nothing changed, when it exists.

        On S3 a repeated request (its first answer was lost) can say False to the creator itself: who must know
        compares the content.
        """

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Create or replace the file whole."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """All bytes; FileNotFoundError when there are none."""

    @abstractmethod
    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """The bytes from `offset`, fewer than `length` at the end of the file."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Bytes of the file; FileNotFoundError when there is none."""

    def unfinished(self, prefix: str) -> list[str]:
        """Paths of writes that did not finish, in the folder and below, sorted: of which `list` says nothing. A bucket
        has none: what was not completed never gets a name."""
        return []

    def uploads(self) -> Sequence[Upload]:
        """What was begun in parts and not finished, oldest first. Only a bucket knows such things."""
        return ()

    def abort_upload(self, upload: Upload) -> None:
        """Give an upload up; one that is over is fine."""
        return

    def empty_folders(self, prefix: str) -> list[str]:
        """Paths of the folders below this one that hold nothing, sorted. A bucket has no folders."""
        return []

    @abstractmethod
    def list(self, prefix: str) -> list[str]:
        """Paths of the finished files in the folder and below, sorted; empty when there is no such folder."""

    @abstractmethod
    def top(self) -> Sequence[str]:
        """Names of the finished files and of the folders right below the root, in no order; none where there is no
        folder. Nothing below them is looked at. NotADirectoryError where the root is a file."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove the file; one that is not there is fine."""

    @abstractmethod
    def open_writer(self, path: str) -> ObjectWriter:
        """A writer for a file that is too big for `put`."""

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """The file as pyarrow reads it, by ranges."""

    @abstractmethod
    def modified(self, path: str) -> float:
        """Epoch seconds at which the file was last written; FileNotFoundError when there is none."""

    def remove_folder(self, path: str) -> None:
        """Remove the folder if it is there and empty; anything else stays as it is."""
        return

    def delta_options(self) -> dict[str, str]:
        """What `deltalake` must be told to reach the lake; made where it is used, since it may hold credentials."""
        return {}

    def exists(self, path: str) -> bool:
        """True when the finished file is there."""
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True


def normal_uri(uri: str) -> str:
    """An absolute path without trailing slash for local URIs, `s3a://bucket/prefix` for S3."""
    parts = urlsplit(uri) if ":/" in uri else None
    if parts and parts.scheme in S3_SCHEMES:
        return f"s3a://{parts.netloc}{unquote(parts.path).rstrip('/')}"
    local = unquote(parts.path) if parts and parts.scheme == "file" else uri
    return str(Path(local).absolute())


def checked(path: str) -> str:
    """The path when it stays inside the lake; ValueError otherwise."""
    if not path or path.startswith("/") or "\\" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"path {path!r} is not a plain path below the root of the lake")
    return path
