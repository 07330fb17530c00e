"""A lake in a bucket on S3 or a server that speaks its protocol, through obstore.

Where and as whom: the variables that every AWS tool reads (AWS_REGION, AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ...),
else the profile in `~/.aws`, else what the machine's role gives. Nothing of it is in a setting, a path or a pickle.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from configparser import ConfigParser
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from crawler.storage import OPEN_SUFFIX, ObjectWriter, Store, Upload, checked, normal_uri
from crawler.storage_s3_uploads import abort_upload, unfinished_uploads

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import ClientConfig, ObjectStore

TRIES, PATIENCE_S = 8, 120  # the waits between them grow from 0.1 s to 15 s, with jitter
WINDOW_BYTES = 1024 * 1024


class BucketStore(Store):
    """A bucket on S3, or any other store that obstore knows when one is handed in (the tests do)."""

    def __init__(self, uri: str, client: ObjectStore | None = None) -> None:
        self.uri = normal_uri(uri)
        self._made = client

    def __getstate__(self) -> dict[str, str]:
        return {"uri": self.uri}  # the client holds credentials and threads: neither travels

    def __setstate__(self, state: dict[str, str]) -> None:
        self.uri, self._made = state["uri"], None

    @property
    def _client(self) -> ObjectStore:
        if self._made is None:
            self._made = s3_client(self.uri)
        return self._made

    def put_new(self, path: str, data: bytes) -> bool:
        try:
            self._client.put(checked(path), data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def put(self, path: str, data: bytes) -> None:
        self._client.put(checked(path), data)

    def read(self, path: str) -> bytes:
        return self._client.get(checked(path)).bytes().to_bytes()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._client.get_range(checked(path), start=offset, length=length).to_bytes()

    def size(self, path: str) -> int:
        return self._client.head(checked(path))["size"]

    def list(self, prefix: str) -> list[str]:
        chunks = self._client.list(checked(prefix) if prefix else None)
        found = (meta["path"] for chunk in chunks for meta in chunk)
        return sorted(path for path in found if not path.endswith(OPEN_SUFFIX))

    def top(self) -> Sequence[str]:
        found = self._client.list_with_delimiter()
        return [*found["common_prefixes"], *(meta["path"] for meta in found["objects"])]

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):  # S3 says nothing, other stores do
            self._client.delete(checked(path))

    def uploads(self) -> Sequence[Upload]:
        return unfinished_uploads(self.uri, s3_config(), TRIES)

    def abort_upload(self, upload: Upload) -> None:
        abort_upload(self.uri, upload, s3_config(), TRIES)

    def open_writer(self, path: str) -> ObjectWriter:
        return BucketWriter(path, self._client)

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(RangeFile(self._client, checked(path)), mode="r")

    def delta_options(self) -> dict[str, str]:
        config = s3_config()
        options = {f"aws_{name}": value for name, value in config.items()}
        options["allow_http"] = str(config.get("endpoint", "").startswith("http://")).lower()
        return options | {"max_retries": str(TRIES), "retry_timeout": f"{PATIENCE_S}s"}

    def modified(self, path: str) -> float:
        return self._client.head(checked(path))["last_modified"].timestamp()


class BucketWriter:
    """A multipart upload: the object appears when it is completed.

    A part that is under way while the upload is given up may stay behind, and so does the upload of a process that was
    killed: nobody sees them, and `gc` or the bucket's lifecycle rule for unfinished uploads removes them.
    """

    def __init__(self, path: str, client: ObjectStore) -> None:
        self.path, self._client = path, client
        self._upload: WritableFile = obstore.open_writer(client, checked(path))
        self._written = 0

    def write(self, data: bytes) -> None:
        self._upload.write(data)
        self._written += len(data)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        try:
            self._upload.close()
        except FileNotFoundError:  # the upload is over: a second request, since the answer to the first was lost
            if self._client.head(self.path)["size"] != self._written:
                raise

    def abort(self) -> None:
        if not self._upload.closed():
            reason = InterruptedError("given up by the writer")
            self._upload.__exit__(InterruptedError, reason, None)  # obstore's one way to abort an upload


class RangeFile(io.RawIOBase):
    """A seekable view of an object that asks for at least `WINDOW_BYTES` at a time, first of all for its end: there
    a Parquet file has its directory, and a small object is whole."""

    def __init__(self, client: ObjectStore, path: str) -> None:
        self._client, self._path, self._at = client, path, 0
        self._size, self._window_at, self._window = _end_of(client, path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._at, 0)
        length = left if size is None or size < 0 else min(size, left)
        start = self._at - self._window_at
        if start < 0 or start + length > len(self._window):
            asked = min(max(length, WINDOW_BYTES), left)
            self._window = self._client.get_range(self._path, start=self._at, length=asked).to_bytes()
            self._window_at, start = self._at, 0
        self._at += length
        return self._window[start : start + length]


def _end_of(client: ObjectStore, path: str) -> tuple[int, int, bytes]:
    """The size of an object, where its last stretch begins, and that stretch; one request unless it is empty."""
    try:
        found = client.get(path, options={"range": {"suffix": WINDOW_BYTES}})
    except FileNotFoundError:
        raise
    except (BaseError, OSError):  # an empty object has no last bytes, and servers refuse to give them
        if size := client.head(path)["size"]:
            raise
        return size, 0, b""
    data = found.bytes().to_bytes()
    return found.meta["size"], found.range[0], data


def s3_client(uri: str) -> S3Store:
    """The client of a lake's bucket, with all paths below the lake's prefix."""
    parts = urlsplit(normal_uri(uri))
    config: Any = s3_config()
    options: ClientConfig = {"allow_http": config.get("endpoint", "").startswith("http://")}
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,
        client_options=options,
        retry_config={"max_retries": TRIES, "retry_timeout": timedelta(seconds=PATIENCE_S)},
    )


def s3_config() -> dict[str, str]:
    """Where the bucket is and who asks, from the environment, else from the profile; made for the moment of its use.

    Without a key here, the machine's role is asked for one by whoever connects.
    """
    names = os.environ
    profile = read_profile(names.get("AWS_PROFILE", "default"))
    keys = ("access_key_id", "secret_access_key", "session_token")
    if "AWS_ACCESS_KEY_ID" in names:
        found = {key: names.get(f"AWS_{key.upper()}") for key in keys}
    else:
        found = {key: profile.get(f"aws_{key}") for key in keys}
    found["region"] = names.get("AWS_REGION") or names.get("AWS_DEFAULT_REGION") or profile.get("region")
    endpoints = (names.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    found["endpoint"] = next(filter(None, endpoints), profile.get("endpoint_url"))
    return {name: value for name, value in found.items() if value} | {"conditional_put": "etag"}


def read_profile(name: str) -> dict[str, str]:
    """The keys of a profile in the two files of the AWS tools; empty when there is none."""
    home = Path.home() / ".aws"
    files = (
        (os.environ.get("AWS_CONFIG_FILE", home / "config"), name if name == "default" else f"profile {name}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE", home / "credentials"), name),
    )
    found: dict[str, str] = {}
    for path, section in files:
        parser = ConfigParser(interpolation=None, default_section="")
        parser.read(path)
        if parser.has_section(section):
            found.update(parser[section])
    return found
