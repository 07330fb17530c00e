"""The parent of Spark's Python workers: pyspark's own, but quiet about workers that Java has let go.

A worker that was idle for a minute finds its connection closed and ends. pyspark prints a traceback for that, in the
middle of a crawl's progress. Whatever else goes wrong in a worker is still printed.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon


def print_unexpected() -> None:
    """`traceback.print_exc`, unless the connection to Java is closed."""
    if not isinstance(sys.exc_info()[1], BrokenPipeError):
        traceback.print_exc()


if __name__ == "__main__":
    daemon.traceback = SimpleNamespace(print_exc=print_unexpected, format_exc=traceback.format_exc)  # type: ignore[assignment, attr-defined]  # the two functions of the module that it uses
    daemon.manager()
