"""The suites of others (tests/suites), whole: what ends otherwise here is listed with its reason."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from crawler.fetch.exchange import Request
from crawler.fetch.headers import ResponseHead, parse_head, prepare
from crawler.page.charset import encoding_of, name_of
from crawler.page.documents import DocumentModule
from crawler.page.html import LexborModule
from crawler.page.html_bs4 import BeautifulSoupModule
from crawler.page.robots import Robots
from crawler.page.url import Url, UrlPolicy
from crawler.settings import UrlSettings

SUITES = Path(__file__).parents[1] / "suites"
PLAIN = UrlPolicy(UrlSettings(False, False, False, False, False))
STOCK = UrlPolicy(UrlSettings())
NAUGHTY = json.loads((SUITES / "blns.json").read_text())

ROBOTS_OTHERWISE = {  # by file and URL
    ("correctness/BOM-characters", "http://example.com/AnyValue"): "a rule behind a stray mark: in doubt we stay out",
    ("correctness/index-page", "http://foo.com/allowed-slash/"): "a rule for /index.html is none for /",
    ("correctness/non-ascii-paths", "http://foo.bar/foo/bar/ツ"): "URLs come escaped here, so the rule is found",
    ("correctness/non-ascii-paths", "http://foo.bar/foo/bar/baz"): "RFC 9309, 2.2.2: %62%61%7A is baz",
    ("stress/327748", "http://m.example.com/robots.txt"): "RFC 9309, 2.2.2: /robots.txt is allowed",
    ("stress/369883", "http://example.com/robots.txt"): "the same",
    ("stress/860237", "http://example.com/robots.txt"): "the same",
    ("stress/369883", "http://example.com/foo/bar"): "digits belong to a token where they belong to ours",
    ("stress/369883", "http://example.com/"): "the same",
}
URLS_OTHERWISE = {
    "http://./": "a name with an empty label",
    "http://../": "the same",
    "http://foo.09..": "the same",
    "http://a.b.c.xn--pokxncvks": "a label that does not decode",
    "http://10.0.0.xn--pokxncvks": "the same",
    "http://a.b.c.XN--pokxncvks": "the same",
    "http://a.b.c.Xn--pokxncvks": "the same",
    "http://10.0.0.XN--pokxncvks": "the same",
    "http://10.0.0.xN--pokxncvks": "the same",
    "https://xn--/": "the same",
}


def test_the_robots_specification_test() -> None:
    otherwise = []
    for file, robots, url, token, is_allowed in json.loads((SUITES / "robots_spec.json").read_text()):
        rules = Robots.from_bytes(robots.encode("utf-8", "surrogateescape"), token)
        if rules.allows(getattr(PLAIN.canonical(url), "url", url)) is not is_allowed:
            otherwise.append((file, url))
    assert set(otherwise) == ROBOTS_OTHERWISE.keys()
    assert len(otherwise) == 11  # two of these stand for two expectations each


def test_the_url_cases_of_the_web_platform_tests() -> None:
    cases = [case for case in json.loads((SUITES / "urltestdata.json").read_text()) if isinstance(case, dict)]
    found = [(case, PLAIN.canonical(case["input"], case.get("base"))) for case in cases]
    of_the_web = [(case, got) for case, got in found if case.get("href", "http:").startswith(("http:", "https:"))]
    assert len(of_the_web) > 500
    otherwise = {case["input"] for case, got in of_the_web if getattr(got, "url", None) != case.get("href")}
    assert otherwise == URLS_OTHERWISE.keys()
    assert {got.url.partition(":")[0] for _, got in found if isinstance(got, Url)} == {"http", "https", "ftp"}


def test_the_encodings_of_html5lib() -> None:
    cases = 0
    for name in ("encoding_tests1.dat", "encoding_tests2.dat"):
        for case in (SUITES / name).read_bytes().split(b"#data\n")[1:]:
            body, _, label = case.partition(b"\n#encoding\n")
            assert encoding_of(body, None).charset == name_of(label.split(b"\n")[0].decode()), body
            cases += 1
    assert cases > 70


@pytest.mark.parametrize("base", [None, "http://h.org/d/page"])
def test_naughty_strings_make_no_naughty_urls(base: str | None) -> None:
    for text in NAUGHTY:
        found = STOCK.canonical(text if base else f"http://h.org/{text}", base)
        if isinstance(found, Url):
            assert found.url.isascii(), text
            assert found.url.isprintable(), text
            assert " " not in found.url, text
            assert STOCK.canonical(found.url) == found, text


@pytest.mark.parametrize("module", [LexborModule(), BeautifulSoupModule()], ids=["lexbor", "bs4"])
def test_naughty_strings_go_through_a_page(module: DocumentModule) -> None:
    for text in filter(str.strip, NAUGHTY):
        for written in (html.escape(text), text):
            markup = f'<title>{written}</title><p>{written}</p><a href="{written}">{written}</a>'
            page = module.parse(markup.encode(), "http://h.org/", "text/html; charset=utf-8")
            assert b"\0" not in "".join([page.title or "", page.text, *page.hrefs]).encode(), text
            if written == html.escape(text):
                wanted = text.replace("\0", "\ufffd")
                assert [(page.title or "").split(), page.hrefs] == [wanted.split(), [wanted]], text


def test_naughty_strings_go_through_a_head() -> None:
    bare = lines_of(Request("http://h.org/", "8.8.8.8", "agent"))
    for text in NAUGHTY:
        head = parse_head(b"HTTP/1.1 200 OK\r\nETag: " + text.encode() + b"\r\nX: y\r\n\r\n", 100)
        if isinstance(head, ResponseHead):
            assert [name for name, _ in head.headers] == ["etag", "x"], text
            value = dict(head.headers)["etag"]
            assert value.encode("latin-1") == text.encode().strip(b" \t"), text
            lines = lines_of(Request("http://h.org/", "8.8.8.8", "agent", etag=value))
            assert [line for line in lines if line != f"If-None-Match: {value}"] == bare, text


def lines_of(request: Request) -> list[str]:
    prepared = prepare(request)
    assert not isinstance(prepared, str)
    return prepared.head.decode("latin-1").split("\r\n")
