"""XML from strangers, element by element: no DTD, no entities, no network, no unbounded depth or text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO

from lxml import etree

# An internal subset can declare entities; documents on the web that need one are hardly to be found.
_INTERNAL_SUBSET = re.compile(rb"<!DOCTYPE[^>\[]*\[", re.IGNORECASE)
_PROLOG_BYTES = 65_536


class XmlError(Exception):
    """The document is not well-formed, or holds what we do not read."""


def elements(body: bytes) -> Iterator[tuple[str, etree._Element]]:
    """The elements of a document with their local names, each when it ends.

    Small faults (an unknown entity, a bare `&`, an end that is cut off) are passed over. Raises XmlError, after the
    elements before the fault, where nothing more can be read.
    """
    if _INTERNAL_SUBSET.search(body[:_PROLOG_BYTES].replace(b"\x00", b"")):
        raise XmlError("the document has an internal DTD subset")
    events = etree.iterparse(
        BytesIO(body),
        events=("end",),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
    )
    try:
        for _, element in events:
            if isinstance(element.tag, str):
                yield element.tag.rpartition("}")[2].lower(), element
    except etree.XMLSyntaxError as error:
        raise XmlError(str(error)) from error


def forget(element: etree._Element) -> None:
    """Free an element that has been read, and its elder siblings."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def text_of(element: etree._Element) -> str:
    """The element's own text, stripped."""
    return (element.text or "").strip()


def is_cut(body: bytes) -> bool:
    """Whether a document ends within a text or tag, so that its last text may be a part of one."""
    return not body.rstrip(b"\x00\t\n\r ").endswith(b">")
