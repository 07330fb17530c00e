"""Marks that follow from what a test uses, and the settings of test libraries."""

from __future__ import annotations

import hypothesis
import pytest

hypothesis.settings.register_profile("patient", deadline=None)  # shared machines pause for longer than any deadline
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses the fixture `spark` needs a JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)
