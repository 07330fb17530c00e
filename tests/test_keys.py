"""Keys are stored and compared for years: a lake is opened only by a version that makes the same ones.

When a line of these tables must change, known URLs would be taken for new ones in every lake there is: raise
`URL_POLICY` (another canonical form) or `KEYS` (another key of the same text) in `crawler.tables.manifest`, and say in
CHANGELOG.md what owners of lakes can do. Canonical forms of what was refused before are no such change.
"""

from __future__ import annotations

import pytest

from crawler.page.fingerprint import payload_checksum
from crawler.page.url import Url, UrlPolicy, host_key
from crawler.settings import UrlSettings
from crawler.tables.manifest import KEYS, URL_POLICY

CANONICAL = [
    ("https://example.org/", "https://example.org/", -3993927212179965989),
    ("HTTP://EXAMPLE.org:80/a/../b/./c", "http://example.org/b/c", -3993926735092324288),
    ("https://example.org:443", "https://example.org/", -3993927212179965989),
    ("https://example.org:8443/x", "https://example.org:8443/x", -3527976317201666974),
    ("https://user:secret@example.org/#top", "https://example.org/", -3993927212179965989),
    ("https://example.org//a///b", "https://example.org/a/b", -3993927042300369698),
    ("https://example.org/a%2fb%7Ec%20d", "https://example.org/a%2fb%7Ec%20d", -3993927193155855170),
    ("https://example.org/?b=2&a=1&utm_source=x", "https://example.org/?b=2&a=1", -3993926590969164206),
    ("https://example.org/x;jsessionid=ABC123", "https://example.org/x", -3993926776657861474),
    ("https://straße.example/ü?q=ö", "https://xn--strae-oqa.example/%C3%BC?q=%C3%B6", -7940075126894951091),
    ("http://127.1/", "http://127.0.0.1/", 5972315008169703686),
    ("http://[2001:DB8::1]/", "http://[2001:db8::1]/", 561025998484197213),
    ("https://www.example.org./a", "https://www.example.org/a", -5497304230734281581),
    ("https://example.org/a b", "https://example.org/a%20b", -3993927472264769158),
    ("https://example.org/?", "https://example.org/?", -3993926713403735882),
    ("https://example.org/a?b=c#d", "https://example.org/a?b=c", -3993927307472873096),
]


@pytest.mark.parametrize(("raw", "canonical", "key"), CANONICAL)
def test_urls_have_the_form_and_the_key_that_lakes_hold(raw: str, canonical: str, key: int) -> None:
    found = UrlPolicy(UrlSettings()).canonical(raw)
    assert isinstance(found, Url)
    assert (found.url, found.key, URL_POLICY, KEYS) == (canonical, key, 1, 1)


def test_hosts_and_payloads_have_the_keys_that_lakes_hold() -> None:
    assert (host_key("example.org"), host_key("example.org:8443")) == (-3993926635519224761, -3527975638407696886)
    assert payload_checksum(b"The wren is a small bird.") == -1919418471609918229
