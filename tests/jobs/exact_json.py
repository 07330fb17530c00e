"""What holds of the JSON of every command."""

from __future__ import annotations

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LOOKS_LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d.*")


def assert_json_is_exact(value: Any, name: str = "") -> None:
    """Keys are strings, numbers fit in 53 bits, times have one form."""
    if isinstance(value, dict):
        for key, one in value.items():
            assert_json_is_exact(one, key)
    elif isinstance(value, list):
        for one in value:
            assert_json_is_exact(one, name)
    elif isinstance(value, str):
        if LOOKS_LIKE_TIME.fullmatch(value):
            assert TIME.fullmatch(value), (name, value)
    elif value is not None and not isinstance(value, bool):
        assert abs(value) < 2**53, (name, value)
        assert not re.search(r"(^|_)(key|checksum)$|_at$|^not_before$|^modified$", name), (name, value)
