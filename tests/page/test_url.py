from __future__ import annotations

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.page.url import Refusal, Url, UrlPolicy, bucket_of, host_key, host_name, registered_domain, url_key
from crawler.settings import UrlSettings

POLICY = UrlPolicy(UrlSettings())
BARE = UrlPolicy(UrlSettings(False, False, False, False, False))


def text(raw: str, base: str | None = None, policy: UrlPolicy = POLICY) -> str:
    found = policy.canonical(raw, base)
    return found.url if isinstance(found, Url) else f"!{found.reason}"


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        # WHATWG parsing
        ("HTTP://EXAMPLE.com:80/%7Efoo/../a b", "http://example.com/a%20b"),
        ("http://example.com", "http://example.com/"),
        ("http:\\\\example.com\\a", "http://example.com/a"),
        (" \thttp://example.com/a\r\nb ", "http://example.com/ab"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://faß.de/ä?ö", "http://xn--fa-hia.de/%C3%A4?%C3%B6"),
        ("http://例え.テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://pаypal.com/", "http://xn--pypal-4ve.com/"),  # with a Cyrillic а
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0177.0.0.1/", "http://127.0.0.1/"),
        ("http://[::FFFF:127.0.0.1]:8080/", "http://[::ffff:7f00:1]:8080/"),
        ("http://example.com/a/./b/%2e%2E/c", "http://example.com/a/c"),
        ("http://example.com/a^b", "http://example.com/a%5Eb"),
        ("http://example.com/?q=a b^", "http://example.com/?q=a%20b^"),
        ("http://example.com/a\0b", "http://example.com/a%00b"),
        # our host rules
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com.:8080/a", "http://example.com:8080/a"),
        # named rules
        ("http://example.com/a#b", "http://example.com/a"),
        ("http://example.com/a?b#c?d", "http://example.com/a?b"),
        ("http://user:secret@example.com/a", "http://example.com/a"),
        ("http://@example.com/a", "http://example.com/a"),
        ("http://example.com/user@a", "http://example.com/user@a"),
        ("http://example.com//a///b//", "http://example.com/a/b/"),
        ("http://example.com/web/2020/http://other.org//x", "http://example.com/web/2020/http://other.org/x"),
        ("http://example.com/?u=http://other.org//x", "http://example.com/?u=http://other.org//x"),
        ("http://example.com/?utm_source=a&b=1&UTM_medium=c", "http://example.com/?b=1"),
        ("http://example.com/?utm_source=a", "http://example.com/"),
        ("http://example.com/?b=1&gclid=x", "http://example.com/?b=1"),
        ("http://example.com/?outm_source=a&gclidx=1", "http://example.com/?outm_source=a&gclidx=1"),
        ("http://example.com/?", "http://example.com/?"),
        ("http://example.com/(S(4hqa0555fwsecu455xqckv45))/a.aspx", "http://example.com/a.aspx"),
        ("http://example.com/a/b/..;sid=1", "http://example.com/a/"),
        ("http://example.com/a/%2e;sid=1", "http://example.com/a/"),
        # refusals
        ("//example.com/", "!invalid"),
        ("http://", "!invalid"),
        ("http://exa mple.com/", "!invalid"),
        ("http://example.com:99999/", "!invalid"),
        ("http://xn--zz.de/", "!invalid"),
        ("http://exam\u200bple.com/\ud800", "!invalid"),
        ("mailto:a@example.com", "!scheme"),
        ("javascript:alert(1)", "!scheme"),
        ("data:text/html,x", "!scheme"),
        ("file:///etc/passwd", "!scheme"),
        ("gopher://example.com/", "!scheme"),
        ("http://a..example.com/", "!invalid_host"),
        (f"http://{'a' * 64}.com/", "!invalid_host"),
        (f"http://{'a.' * 127}com/", "!invalid_host"),
    ],
)
def test_canonical(raw: str, canonical: str) -> None:
    assert text(raw) == canonical


FOO = "http://www.foo.com/foo"


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [  # after the cases of Nutch's regex URL normaliser
        (f"{FOO}.php?PHPSESSID=cdc993a493e899bed04f4d0c8a462a03", f"{FOO}.php"),
        (f"{FOO}.php?f=2&PHPSESSID=cdc993a493e899bed04f4d0c8a462a03", f"{FOO}.php?f=2"),
        (f"{FOO}.php?f=2&PHPSESSID=cdc993a493e899bed04f4d0c8a462a03&q=3", f"{FOO}.php?f=2&q=3"),
        (f"{FOO}.php?PHPSESSID=cdc993a493e899bed04f4d0c8a462a03&f=2", f"{FOO}.php?f=2"),
        (f"{FOO}.php?Bv_SessionID=fassassddsajkl", f"{FOO}.php"),
        (f"{FOO}.php?Bv_SessionID=fassassddsajkl&x=y", f"{FOO}.php?x=y"),
        (f"{FOO}.html;jsessionid=1E6FEC0D14D044541DD84D2D013D29ED", f"{FOO}.html"),
        (f"{FOO}.html?param=1&another=2;jsessionid=1E6FEC0D14D0", f"{FOO}.html?param=1&another=2"),
        (f"{FOO}.html;jsessionid=1E6FEC0D14D0?param=1&another=2", f"{FOO}.html?param=1&another=2"),
        (f"{FOO}.php?&x=1&sid=xyz&something=1", f"{FOO}.php?x=1&something=1"),
        (f"{FOO}.html?_sessionID=824A6C0A13a7e11205wxN28F44E3", f"{FOO}.html"),
        (
            f"{FOO}.php?_sessionid=q&outputformat=html&path=/3_images/foo",
            f"{FOO}.php?outputformat=html&path=/3_images/foo",
        ),
        (f"{FOO}.php?_pid=2&_spid=0&lang=en&_sessionid=e36902d5", f"{FOO}.php?_pid=2&_spid=0&lang=en"),
        (f"{FOO}.php?app=content&lang=en&_sid=587fba8f&b=35&m=47", f"{FOO}.php?app=content&lang=en&b=35&m=47"),
        # but these are no session ids
        (f"{FOO}.aspx?NewsID=1567539", f"{FOO}.aspx?NewsID=1567539"),
        (f"{FOO}.cfm?country=uk&addressid=250646&pagingpos=0", f"{FOO}.cfm?country=uk&addressid=250646&pagingpos=0"),
        (f"{FOO};version=2/x", f"{FOO};version=2/x"),
    ],
)
def test_session_ids(raw: str, canonical: str) -> None:
    assert text(raw) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "http://u:p@example.com//a//b;jsessionid=1?utm_source=x&sid=2#f",
        "http://u@example.com/#",
    ],
)
def test_each_rule_can_be_switched_off(url: str) -> None:
    assert text(url, policy=BARE) == ada_url.URL(url).href


@pytest.mark.parametrize(
    ("raw", "resolved"),
    [
        ("b", "http://h.org/d/b"),
        ("../b", "http://h.org/b"),
        ("/b", "http://h.org/b"),
        ("//o.org/b", "http://o.org/b"),
        ("?b", "http://h.org/d/a?b"),
        ("#b", "http://h.org/d/a?q"),
        ("", "http://h.org/d/a?q"),
        ("http:b", "http://h.org/d/b"),
        ("https:b", "https://b/"),
    ],
)
def test_relative_to_a_base(raw: str, resolved: str) -> None:
    assert text(raw, "http://h.org/d/a?q#f") == resolved


def test_a_base_that_is_no_url_is_a_refusal() -> None:
    assert POLICY.canonical("a", "nowhere") == Refusal("invalid")


PARTS = (
    'http https : / // \\ ? # @ [::1] %41 %2e .. . é ß 日本 xn--fa-hia 0x7f 127.1 256 | < " ^ ` { EX com a.b % %zz 80 '
    "99999 ftp data ＧＯ - _ ~ ! + , ; = ' [ ] ① ;sid= ;jsessionid=1 &sid=2 utm_a=1 & (S(4hqa0555fwsecu455xqckv45))"
).split(" ")
URLISH = st.lists(st.sampled_from([*PARTS, "\t", "\n", " ", "\0", "\x7f", "\u00ad", "\ufeff"]), max_size=9).map("".join)


@given(URLISH, st.sampled_from([None, "http://example.org/foo/bar?x#y", "https://[2001:db8::1]:8443/a/b;c/"]))
def test_without_rules_it_is_the_standards_own_parser(raw: str, base: str | None) -> None:
    ours = BARE.canonical(raw, base)
    try:
        theirs = ada_url.URL(raw, base)
    except ValueError:
        assert ours == Refusal("invalid")
        return
    if isinstance(ours, Url):
        assert ours.url == theirs.href.replace(theirs.host, ours.host, 1)
    elif ours.reason == "invalid":
        assert "xn--" in theirs.host  # the one thing we are stricter in


@given(URLISH, st.sampled_from(["http://example.org/foo/bar?x#y", "https://h.org/a;sid=1/"]))
def test_canonical_texts_are_plain_and_stay_as_they_are(raw: str, base: str) -> None:
    found = POLICY.canonical(raw, base)
    if isinstance(found, Url):
        assert found.url.isascii()
        assert found.url.isprintable()
        assert " " not in found.url
        assert POLICY.canonical(found.url) == found
        assert found.key == url_key(found.url, found.host)
        assert found.url.startswith((f"http://{found.host}/", f"https://{found.host}/", f"ftp://{found.host}/"))


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk:8080", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("a.b.example.org", "example.org"),
        ("localhost:80", "localhost"),
        ("127.0.0.1:8080", "127.0.0.1"),
        ("[::1]:8080", "[::1]"),
        ("user.github.io", "github.io"),  # the private part of the list does not count
        ("a.b.unknown-tld", "b.unknown-tld"),
        ("www.xn--fiqs8s", "www.xn--fiqs8s"),
        ("a.www.xn--fiqs8s", "www.xn--fiqs8s"),
    ],
)
def test_registered_domain(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_keys_of_a_host_share_its_high_bits() -> None:
    one, other = (POLICY.canonical(f"http://example.org:8080/{path}") for path in "ab")
    assert isinstance(one, Url)
    assert isinstance(other, Url)
    assert one.key != other.key
    assert one.key >> 40 == other.key >> 40 == host_key("example.org:8080") >> 40
    assert -(1 << 63) <= one.key < 1 << 63


def test_host_keys_are_those_of_spark() -> None:
    # SELECT xxhash64('example.org'), xxhash64('doc.example.org:8080') in Spark 4.2
    assert [host_key(host) for host in ("example.org", "doc.example.org:8080")] == [
        -3993926635519224761,
        4809416645082922032,
    ]


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, 65_536))
def test_buckets_are_ranges_of_unsigned_host_bits(key: int, buckets: int) -> None:
    bucket = bucket_of(key, buckets)
    assert 0 <= bucket < buckets
    assert bucket == ((key % (1 << 64)) >> 40) * buckets // (1 << 24)
    assert bucket == bucket_of(key ^ 1, buckets)


@pytest.mark.parametrize(
    ("host", "name"), [("h", "h"), ("h:1", "h"), ("[::1]", "[::1]"), ("[::1]:1", "[::1]"), ("1.2.3.4:5", "1.2.3.4")]
)
def test_host_name(host: str, name: str) -> None:
    assert host_name(host) == name
