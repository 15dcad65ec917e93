"""The XML that an S3 server answers with: listings, error bodies, the state of versioning.

A page of a listing is a thousand rows of one shape, and a general parser spends 49 ms on what a regular expression
reads in two. So the shape of a row is learned: an element is read by a strict reader, its shape becomes an expression
that matches nothing else, and rows are read by that expression as long as they match it without a gap; the next row
that does not is read strictly again. What neither understands is `Malformed`: a page half read would be a listing
from which objects are missing.

There are no document types, hence no entities to expand, no comments and no CDATA: servers send none, and refusing
them costs nothing. Only the five predefined entities and character references are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote_plus

from stado_like.store.wire import Listed

DEEPEST = 20
_PROLOG = re.compile(r"\ufeff?\s*(?:<\?xml\s[^<>]*\?>\s*)?").match
_TOKEN = re.compile(
    r"""<(/?)([A-Za-z_][\w.:-]*)((?:\s+[A-Za-z_:][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(/?)>|([^<]+)"""
).match
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6})|([A-Za-z]+));|&")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ROW, _ROW_END = "<Contents>", "</Contents>"
_WANTED = {"Key": "([^<]*)", "LastModified": "([^<]*)", "ETag": "([^<]*)", "Size": r"\s*([0-9]{1,19})\s*"}


class Malformed(Exception):
    """No such answer, or not the whole of it."""


@dataclass(slots=True)
class Element:
    """Text is what stands in it directly, undecoded; attributes (namespaces) are dropped."""

    name: str
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def child(self, name: str) -> str:
        """The text of the first child of that name, decoded; empty when there is none."""
        return next((_decoded(child.text) for child in self.children if child.name == name), "")


def read_listing(body: bytes) -> tuple[tuple[Listed, ...], bool]:
    """The rows of a ListObjectsV2 answer, and whether there are more. Raises `Malformed`."""
    text = _text(body)
    first, last = text.find(_ROW), text.rfind(_ROW_END) + len(_ROW_END)
    if first >= 0 and last <= first:
        raise Malformed("a row without an end")
    frame = _document(text if first < 0 else text[:first] + text[last:])
    if frame.name != "ListBucketResult" or any(child.name == "Contents" for child in frame.children):
        raise Malformed(f"<{frame.name}> instead of a <ListBucketResult> with plain rows")
    told = frame.child("IsTruncated").strip()
    if told not in ("true", "false"):
        raise Malformed(f"IsTruncated is {told!r}")
    rows = _rows(text, first, last, encoded=frame.child("EncodingType") == "url") if first >= 0 else []
    return tuple(rows), told == "true"


def read_error(body: bytes) -> Element:
    """The error a server describes, empty when it describes none: people are shown it, nothing is decided by it."""
    try:
        root = _document(_text(body))
    except Malformed:
        return Element("Error")
    return next((child for child in root.children if child.name == "Error"), root)


def read_versioning(body: bytes) -> str:
    """`Enabled`, `Suspended` or empty. Raises `Malformed`."""
    root = _document(_text(body))
    if "Versioning" not in root.name:  # one server says GetBucketVersioningResponse
        raise Malformed(f"<{root.name}> instead of <VersioningConfiguration>")
    return root.child("Status")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as wrong:
        raise Malformed(str(wrong)) from wrong


def _document(text: str) -> Element:
    start = _PROLOG(text)
    root, end = _element(text, start.end() if start else 0)
    if text[end:].strip():
        raise Malformed(f"more after </{root.name}>: {text[end : end + 60]!r}")
    return root


def _element(text: str, position: int) -> tuple[Element, int]:
    """The element that begins at `position`, and where it ends."""
    opened: list[Element] = []
    while True:
        token = _TOKEN(text, position)
        if token is None:
            raise Malformed(f"{text[position : position + 60]!r} at {position}")
        position = token.end()
        closing, name, attributes, empty, words = token.groups()
        if words is not None:
            if not opened:
                raise Malformed(f"no element but {words[:60]!r}")
            opened[-1].text += words
            continue
        if closing:
            if not opened or opened[-1].name != name or attributes or empty:
                raise Malformed(f"</{name}> closes {opened[-1].name if opened else 'nothing'}")
            element = opened.pop()
        else:
            element = Element(name)
            if opened:
                opened[-1].children.append(element)
            if not empty:
                opened.append(element)
                if len(opened) > DEEPEST:
                    raise Malformed(f"more than {DEEPEST} elements inside each other")
                continue
        if not opened:
            return element, position


# --- rows ----------------------------------------------------------------------------------------------------------


def _rows(text: str, position: int, end: int, *, encoded: bool) -> list[Listed]:
    rows: list[Listed] = []
    seconds = lru_cache(maxsize=None)(_seconds)  # rows written together share their second
    all_alike = True
    while position < end:
        element, _ = _element(text, position)
        shape, (key, etag, size, modified) = _shape_of(element)
        run = shape.findall(text, position, end) if all_alike else []
        covered = sum(len(found[0]) for found in run)
        if position + covered != end:  # other shapes lie between, so only the first rows without a gap are taken
            all_alike = False
            run, covered = _unbroken(shape, text, position, end)
        if not run:
            raise Malformed(f"a row that cannot be read: {text[position : position + 200]!r}")
        rows += [
            Listed(_key(row[key], encoded), _decoded(row[etag]), int(row[size]), seconds(row[modified])) for row in run
        ]
        position += covered
    return rows


def _unbroken(shape: re.Pattern[str], text: str, position: int, end: int) -> tuple[list[tuple[str, ...]], int]:
    run, at = [], position
    while (found := shape.match(text, at, end)) is not None:
        run.append(found.groups())
        at = found.end()
    return run, at - position


def _shape_of(row: Element) -> tuple[re.Pattern[str], tuple[int, int, int, int]]:
    """The expression of rows like this one, and in which of its groups key, etag, size and time lie."""
    names = [child.name for child in row.children]
    if row.name != "Contents" or row.text.strip() or any(names.count(name) != 1 for name in _WANTED):
        raise Malformed(f"<{row.name}> with {', '.join(names) or 'nothing'} inside a listing")
    order = [name for name in names if name in _WANTED]
    place = {name: number for number, name in enumerate(order, 1)}
    return _expression(_form(row)), (place["Key"], place["ETag"], place["Size"], place["LastModified"])


Form = tuple[str, tuple["Form", ...]]


def _form(element: Element) -> Form:
    return element.name, tuple(_form(child) for child in element.children)


@lru_cache(maxsize=64)
def _expression(form: Form) -> re.Pattern[str]:
    def inside(form: Form, depth: int) -> str:
        name, children = form
        tag = re.escape(name)
        if children:
            held = r"\s*" + r"\s*".join(inside(child, depth + 1) for child in children) + r"\s*"
        elif depth == 1 and name in _WANTED:
            held = _WANTED[name]
        else:
            return f"<{tag}(?:>[^<]*</{tag}>|\\s*/>)"
        return f"<{tag}>{held}</{tag}>"

    return re.compile(rf"({inside(form, 0)}\s*)")


def _key(text: str, encoded: bool) -> str:
    key = _decoded(text)
    return unquote_plus(key) if encoded and ("%" in key or "+" in key) else key


def _seconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise Malformed(f"LastModified is {text!r}") from wrong
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _decoded(text: str) -> str:
    if "&" not in text:
        return text
    text = text.replace("&#34;", '"').replace("&quot;", '"')  # what every ETag of a listing holds
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    try:
        return _ENTITIES[name] if name else chr(int(decimal) if decimal else int(hexadecimal or "", 16))
    except (KeyError, ValueError, OverflowError) as wrong:
        raise Malformed(f"{reference[0]!r} is no character") from wrong


__all__: list[str] = ["Element", "Malformed", "read_error", "read_listing", "read_versioning"]
