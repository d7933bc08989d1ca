"""Checks of what a damaged dataset shows: texts, HTML, tables. A fault raises ShownError."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa

from lance_nb.errors import InternalError, LanceError
from lance_nb.explorer.static_rendering import StaticRendering
from lance_nb.shown_text import INVISIBLE, visible_lines

MESSAGE_CHARS_MAX = 1500
TAGS = frozenset(
    {"details", "summary", "b", "p", "table", "thead", "tbody", "tr", "th", "td", "pre"}
)
ATTRIBUTES = frozenset({("open", None), ("style", "text-align:left")})
PAGE_TAGS = TAGS | {"html", "head", "meta", "title", "style", "body", "main", "script"}
PAGE_ATTRIBUTES = frozenset({"lang", "charset", "http-equiv", "content", "name", "id", "type"})


class ShownError(Exception):
    """What is shown is not fit to be shown."""


class _Markup(HTMLParser):
    def __init__(self, *, page: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._page = page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in (PAGE_TAGS if self._page else TAGS):
            raise ShownError(f"<{tag} {attrs}> in HTML")
        for one in attrs:
            if one not in ATTRIBUTES and not (self._page and one[0] in PAGE_ATTRIBUTES):
                raise ShownError(f"<{tag} {one}> in HTML")

    def handle_comment(self, data: str) -> None:
        raise ShownError(f"comment {data!r} in HTML")

    def handle_pi(self, data: str) -> None:
        raise ShownError(f"instruction {data!r} in HTML")

    def unknown_decl(self, data: str) -> None:
        raise ShownError(f"declaration {data!r} in HTML")


def check_html(html: str, *, page: bool = False) -> None:
    """Check that a piece of HTML, or a whole page, has no element but those of our templates."""
    parser = _Markup(page=page)
    parser.feed(html)
    parser.close()
    if not page and INVISIBLE.search(html.replace("\n", "")):
        raise ShownError(f"invisible characters in HTML: {html!r}")


def check_picture(picture: StaticRendering) -> None:
    """Check both forms of a picture."""
    check_html(picture.html)
    check_text(picture.text)


def check_text(text: str) -> None:
    """Check that a text holds nothing that is invisible or that a terminal takes for a command."""
    if visible_lines(text) != text:
        raise ShownError(f"invisible characters in {text!r}")


def check_error(error: LanceError) -> None:
    """Check the text of an error, its notes, and that it can be pickled as Spark does."""
    if isinstance(error, InternalError):
        raise error
    text = str(error)
    if len(text) > MESSAGE_CHARS_MAX:
        raise ShownError(f"an error of {len(text)} characters: {text}")
    for one in (text, *getattr(error, "__notes__", ())):
        check_text(one)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    if (type(again), str(again)) != (type(error), text):
        raise ShownError(f"{type(error).__name__} is pickled as {again!r}")


def check_table(found: pa.Table | pa.RecordBatch) -> None:
    """Check that Arrow finds a table valid."""
    # A type changed to date64 may hold parts of days, one bit makes a decimal too long or a time
    # longer than a day (pylance writes such times too): they harm nobody, and to look at every
    # value would.
    for field, column in zip(found.schema, found.columns, strict=True):
        if not pa.types.is_date64(field.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                known = ("does not fit in precision", "is not within the acceptable range")
                if not any(text in str(error) for text in known):
                    raise


def check_repr(value: Any) -> None:
    """Check the short text of a value."""
    check_text(repr(value))
