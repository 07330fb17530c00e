"""What ends an attempt at a partition: these pass through where every other error costs one URL."""

from __future__ import annotations


class AttemptOver(RuntimeError):
    """The attempt cannot go on; what it sealed stays, and the next attempt goes on from there."""


class StorageFailed(AttemptOver):
    """The lake did not take or give what we asked of it."""


class LeaseLost(AttemptOver):
    """Another attempt has the partition now: this one may neither ask a server nor seal a segment."""
