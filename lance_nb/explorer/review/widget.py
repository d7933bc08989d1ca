"""The review of a branch against its target: what it changes, checks, and the discussion.

Its ES module is ``review.js``, loaded when a review is opened from the card of a branch. Requests:

=============== =========================================== ===================================
request         args                                        result
=============== =========================================== ===================================
review.open     branch, into (long work)                    summary, discussion, identifier,
                                                            mark, problems, author, code
review.section  branch, into, section (long work)           models.review, images in buffers
review.news     branch, into, mark (long work)              mark; with a new one also summary,
                                                            discussion, problems, newest
review.page     branch, into, offset (long work)            size, name, code; a piece of the page in
                                                            one file, from ``offset`` on
review.write    branch, into, identifier, kind, text,       the same, words, code
                reply_to, author (long work)
=============== =========================================== ===================================

``into`` is a branch; null is main. ``review.open`` takes the newest versions of both; the other
requests are about the versions that it took, so that an approval is for what was looked at.
``newest`` is the newest version of the branch. ``mark`` changes when somebody writes a comment or
commits to the branch; it comes from listings alone.

Comments need the open lock, as everything that writes does. They are not undone.

Limits: ``REVIEWS_MAX`` reviews are kept open.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.code_lines import Python, magic, offered
from lance_nb.dataset.checks.cache import digest
from lance_nb.dataset.reviews import Review, default_author
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.undo import NoUndo
from lance_nb.explorer.media import PIECE_BYTES
from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.review.review import ReviewSections, place_json
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers, Session
from lance_nb.explorer.source import writable_dataset
from lance_nb.format.reviews import (
    AUTHOR_CHARS_MAX,
    KINDS,
    TEXT_CHARS_MAX,
    is_comment_name,
    review_folder,
)

SECTIONS = ("schema", "cells", "rows", "drift", "checks")
REVIEWS_MAX = 4
SECTION_IMAGE_BYTES = 3_000_000
_METHODS = {
    "comment": "comment", "approval": "approve", "changes-requested": "request_changes",
}  # fmt: skip
_FLAGS = {"approval": "--approve", "changes-requested": "--request-changes"}
_SAID = {
    "comment": "Comment on", "approval": "Approve", "changes-requested": "Request changes of",
}  # fmt: skip
Names = tuple[str, str]


class ReviewHandlers(RequestHandlers):
    """Handlers of reviews; keep what was compared between requests."""

    prefix: ClassVar[str] = "review"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._reviews: OrderedDict[Names, Review] = OrderedDict()
        self._page: tuple[Names, bytes] | None = None  # the last one that was asked for

    def on_open(self, args: Mapping[str, Any]) -> Job:
        """Open the review of a branch as it is now."""
        names = _names_of(args)

        def work(_progress: Progress) -> Answer:
            dataset = writable_dataset(self.session.dataset)
            review = self._reviews[names] = dataset.branches.review(*names)
            self._reviews.move_to_end(names)
            while len(self._reviews) > REVIEWS_MAX:
                self._reviews.popitem(last=False)
            return Answer(
                {
                    **_discussed(review),
                    "identifier": review.identifier,
                    "author": text.line(default_author(), AUTHOR_CHARS_MAX),
                    "code": _code(review),
                }
            )

        return Job(work)

    def on_section(self, args: Mapping[str, Any]) -> Job:
        """Compare one thing."""
        names, section = _names_of(args), words(args, "section", 20)
        if section not in SECTIONS:
            raise InvalidInputError(f"section must be one of {', '.join(SECTIONS)}")

        def work(progress: Progress) -> Answer:
            sections = ReviewSections(self._opened(names), SECTION_IMAGE_BYTES, progress)
            section_data = getattr(sections, section)()
            return Answer(section_data, tuple(sections.images))

        return Job(work)

    def on_news(self, args: Mapping[str, Any]) -> Job:
        """Tell whether somebody wrote a comment, or committed to the branch."""
        names, mark = _names_of(args), words(args, "mark", 64)

        def work(_progress: Progress) -> Answer:
            review = self._opened(names)
            now = _mark_of(review)
            return Answer({"mark": now} if now == mark else _discussed(review))

        return Job(work)

    def on_page(self, args: Mapping[str, Any]) -> Job:
        """Return a piece of the page in one file; the first piece makes the page."""
        names, offset = _names_of(args), integer(args, "offset", low=0, high=MAX_COUNT)

        def work(_progress: Progress) -> Answer:
            review = self._opened(names)
            if not offset or self._page is None or self._page[0] != names:
                self._page = names, review.to_html().encode()
            page = self._page[1]
            name = re.sub(r"[^\w.-]+", "-", f"review-{review.branch}", flags=re.ASCII)
            result = {"size": len(page), "name": f"{name}.html", "code": _page_code(review)}
            return Answer(result, (page[offset : offset + PIECE_BYTES],))

        return Job(work)

    def on_write(self, args: Mapping[str, Any]) -> Job:
        """Write a comment, an approval or a request for changes."""
        self.session.check_unlocked()
        names, kind = _names_of(args), words(args, "kind", 20)
        identifier = words(args, "identifier", 64)
        if kind not in KINDS:
            raise InvalidInputError(f"kind must be one of {', '.join(KINDS)}")
        comment_text = words(args, "text", TEXT_CHARS_MAX).strip()
        reply_to = None if args.get("reply_to") is None else words(args, "reply_to", 64)
        author = words({"author": args.get("author") or ""}, "author", AUTHOR_CHARS_MAX).strip()
        if not comment_text and kind != "approval":
            raise InvalidInputError("write what you want to say first")

        def work(_progress: Progress) -> Answer:
            review = self._opened(names)
            if review.identifier != identifier:
                raise InvalidInputError("this review was opened again; look at it first")
            options = {"author": author or None}
            if kind == "comment":
                review.comment(comment_text, reply_to=reply_to, author=author or None)
            else:
                getattr(review, _METHODS[kind])(comment_text, **options)
            title = f"{_SAID[kind]} {text.name(review.branch)}:{review.source.version}"
            code = _code(review, kind, comment_text, reply_to=reply_to, author=author)
            undo = NoUndo("comments stay, as the record of a discussion")
            operations_log_of(review.source.uri).record(title, code, undo)
            return Answer({**_discussed(review), "words": title, "code": code})

        return Job(work)

    def _opened(self, names: Names) -> Review:
        review = self._reviews.get(names)
        if review is None:
            raise InvalidInputError("this review is no longer open: open it again")
        return review


def _names_of(args: Mapping[str, Any]) -> Names:
    branch = words(args, "branch", refs.MAX_CHARS)
    into = refs.MAIN if args.get("into") is None else words(args, "into", refs.MAX_CHARS)
    return branch, into


def _discussed(review: Review) -> dict[str, Any]:
    """Return what changes while people discuss."""
    mark = _mark_of(review)  # before the comments are read: what comes meanwhile is news
    comments = review.comments()
    sections = ReviewSections(review)
    return {
        "mark": mark,
        "summary": sections.summary(comments),
        "discussion": sections.discussion(comments),
        "problems": [text.line(problem) for problem in review.problems],
        "newest": _newest(review),
    }


def _newest(review: Review) -> dict[str, Any] | None:
    """Return the newest version of the branch; None if the branch was deleted."""
    source = review.source
    try:
        numbers = source.version_numbers()
    except LanceError:
        return None
    label = text.ref_label(source.branch, numbers[-1])
    return {**place_json(source), "version": numbers[-1], "label": label}


def _mark_of(review: Review) -> str:
    """Return a short text that changes with the discussion and the branch; reads listings only."""
    folder = review_folder(review.branch, review.identifier)
    names = review.source.opened[0].root.list_names(folder)
    newest = _newest(review)
    comments = sorted(name for name in names if is_comment_name(name))
    return digest(*comments, "at", str(newest and newest["version"]))


def _page_code(review: Review) -> dict[str, str]:
    """Return the lines that write the page to a file."""
    opened = Python("ds.branches.review").call(review.branch, review.into)
    options = {"--into": review.into, "--html": "review.html"}
    line = magic("review", review.branch, options=options)
    return offered(opened.attribute("to_html").call("review.html"), line)


def _code(
    review: Review,
    kind: str = "",
    comment_text: str = "",
    reply_to: str | None = None,
    author: str = "",
) -> dict[str, str]:
    """Return the lines that open the review, or say the same."""
    opened = Python("ds.branches.review").call(review.branch, review.into)
    options: dict[str, object] = {"--into": review.into}
    if not kind:
        return offered(opened, magic("review", review.branch, options=options))
    arguments = [comment_text] if comment_text else []
    named = {"reply_to": reply_to} if reply_to else {}
    named |= {"author": author} if author else {}
    call = opened.attribute(_METHODS[kind]).call(*arguments, **named)
    options |= {"-m": comment_text or None, "--reply-to": reply_to, "--author": author or None}
    options |= {_FLAGS[kind]: True} if kind in _FLAGS else {}
    return offered(call, magic("review", review.branch, options=options))
