"""Changes that no test needs to notice, each with its reason: module, the line before and after, why.

An entry whose change is not to be found in the module any more is an error (tests/mutants/test_mutants.py).
"""

from __future__ import annotations

from typing import NamedTuple


class Accepted(NamedTuple):
    module: str
    before: str
    after: str
    reason: str


ACCEPTED: tuple[Accepted, ...] = ()
