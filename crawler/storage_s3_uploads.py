"""Multipart uploads that nobody finished: who was killed in the middle of a file leaves one, and it is paid for.

obstore and Arrow's client neither list nor abort the uploads of others, so this one errand runs with botocore.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from crawler.storage import Upload, normal_uri


def unfinished_uploads(uri: str, config: dict[str, str], tries: int) -> list[Upload]:
    """The uploads below the lake's prefix that are neither completed nor aborted, oldest first."""
    bucket, prefix = _place(uri)
    pages = (
        _client(frozenset(config.items()), tries)
        .get_paginator("list_multipart_uploads")
        .paginate(Bucket=bucket, Prefix=prefix)
    )
    found = [
        Upload(one["Key"].removeprefix(prefix), one["UploadId"], one["Initiated"].timestamp())
        for page in pages
        for one in page.get("Uploads", ())
    ]
    return sorted(found, key=lambda one: (one.started, one.path))


def abort_upload(uri: str, upload: Upload, config: dict[str, str], tries: int) -> None:
    """Give the upload up, and its parts with it; one that is over is fine."""
    bucket, prefix = _place(uri)
    client = _client(frozenset(config.items()), tries)
    try:
        client.abort_multipart_upload(Bucket=bucket, Key=prefix + upload.path, UploadId=upload.id)
    except client.exceptions.NoSuchUpload:
        return


def _place(uri: str) -> tuple[str, str]:
    """Bucket, and the prefix of all keys of the lake."""
    parts = urlsplit(normal_uri(uri))
    prefix = parts.path.strip("/")
    return parts.netloc, f"{prefix}/" if prefix else ""


@lru_cache(maxsize=1)
def _client(items: frozenset[tuple[str, str]], tries: int) -> Any:
    from botocore.config import Config  # late: only `gc` needs it
    from botocore.session import get_session

    config = dict(items)
    return get_session().create_client(
        "s3",
        region_name=config.get("region"),
        endpoint_url=config.get("endpoint"),
        aws_access_key_id=config.get("access_key_id"),
        aws_secret_access_key=config.get("secret_access_key"),
        aws_session_token=config.get("session_token"),
        config=Config(
            retries={"total_max_attempts": tries, "mode": "standard"},
            s3={"addressing_style": "path" if "endpoint" in config else "auto"},
        ),
    )
