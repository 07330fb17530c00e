"""The demo web: a little internet of our own on loopback addresses, for `make crawl` and for the tests."""

from tests.web.demo import DemoWeb
from tests.web.expected import Expected
from tests.web.request_log import Request
from tests.web.sites import LARGE, Scale

__all__ = ["LARGE", "DemoWeb", "Expected", "Request", "Scale"]
