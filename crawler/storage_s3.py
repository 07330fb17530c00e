"""A lake in a bucket on S3 or a server that speaks its protocol, through obstore.

Where and as whom: the variables that every AWS tool reads (AWS_REGION, AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ...),
else the profile in `~/.aws`, else what the machine's role gives. Nothing of it is in a setting, a path or a pickle.
"""

from __future__ import annotations

import io
import os
from configparser import ConfigParser
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from crawler.storage import OPEN_SUFFIX, ObjectWriter, Store, checked, normal_uri

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config

RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(minutes=2)}  # with jitter, by obstore


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

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):  # S3 says nothing, other stores do
            self._client.delete(checked(path))

    def open_writer(self, path: str) -> ObjectWriter:
        return BucketWriter(path, self._client)

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(RangeFile(self, path), mode="r")


class BucketWriter:
    """A multipart upload: the object appears when it is completed."""

    def __init__(self, path: str, client: ObjectStore) -> None:
        self.path = path
        self._upload: WritableFile = obstore.open_writer(client, checked(path))
        self._written = 0

    def write(self, data: bytes) -> None:
        self._upload.write(data)
        self._written += len(data)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        self._upload.close()

    def abort(self) -> None:
        if not self._upload.closed():
            reason = InterruptedError("given up by the writer")
            self._upload.__exit__(InterruptedError, reason, None)  # obstore's one way to abort an upload


class RangeFile(io.RawIOBase):
    """A seekable view of an object: every read is one ranged request."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path, self._at = store, path, 0
        self._size = store.size(path)

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
        data = self._store.read_range(self._path, self._at, length) if length else b""
        self._at += len(data)
        return data


def s3_client(uri: str) -> S3Store:
    """The client of a lake's bucket, with all paths below the lake's prefix."""
    parts = urlsplit(normal_uri(uri))
    config, endpoint = s3_config()
    options: ClientConfig = {"allow_http": endpoint.startswith("http://")}
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,
        client_options=options,
        retry_config=RETRIES,
    )


def s3_config() -> tuple[S3Config, str]:
    """What the profile adds to the environment (which obstore reads itself), and the endpoint that counts."""
    names = os.environ
    profile = read_profile(names.get("AWS_PROFILE", "default"))
    config: S3Config = {}
    if "AWS_ACCESS_KEY_ID" not in names and "aws_access_key_id" in profile:
        config["access_key_id"] = profile["aws_access_key_id"]
        config["secret_access_key"] = profile.get("aws_secret_access_key", "")
        if "aws_session_token" in profile:
            config["session_token"] = profile["aws_session_token"]
    if not names.keys() & {"AWS_REGION", "AWS_DEFAULT_REGION"} and "region" in profile:
        config["region"] = profile["region"]
    given = names.get("AWS_ENDPOINT_URL_S3") or names.get("AWS_ENDPOINT_URL") or names.get("AWS_ENDPOINT")
    if not given and "endpoint_url" in profile:
        config["endpoint"] = profile["endpoint_url"]
    return config, given or profile.get("endpoint_url", "")


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
