"""The verb that reviews a branch: what it changes, checks, discussion."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields

from lance_nb.dataset.reviews import Review
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.explorer.static_rendering import StaticRendering
from lance_nb.format.reviews import ReviewComment
from lance_nb.magic.context import MagicContext
from lance_nb.magic.verb import BRANCH, Result, Verb, argument


def review(context: MagicContext, args: Namespace) -> Result:
    """Show a review, after writing a comment or an approval."""
    from lance_nb.explorer.review_page import review_picture

    found = context.dataset.branches.review(args.branch, args.into)
    _write(found, args)
    if args.html is not None:
        found.to_html(args.html)
    comments = found.comments()
    approved = found.is_approved
    state = "approved" if approved else "not approved"
    version = f"{text.name(found.branch)}:{found.source.version}"
    lines = [f"Review of {version} into {text.name(found.into)}: {state}", repr(found.diff)]
    lines += [f"checks: {found.checks.sentence}", *map(_said, comments)]
    names = [one.name for one in fields(ReviewComment)]
    data = {
        "branch": found.branch,
        "version": found.source.version,
        "into": found.into,
        "approved": approved,
        "checks": found.checks.status,
        "comments": [{name: getattr(one, name) for name in names} for one in comments],
    }
    return Result(found, StaticRendering("\n".join(lines), review_picture(found)), data)


def _said(one: ReviewComment) -> str:
    words = f": {text.line(one.text)}" if one.text else ""
    return f"{one.created_at:%Y-%m-%d %H:%M} {text.name(one.author)} {one.kind}{words} ({one.id})"


def _write(found: Review, args: Namespace) -> None:
    message = args.message or ""
    if args.approve and args.request_changes:
        raise InvalidInputError("--approve and --request-changes exclude each other")
    if args.approve:
        found.approve(message, author=args.author)
    elif args.request_changes:
        found.request_changes(message, author=args.author)
    elif message:
        found.comment(message, reply_to=args.reply_to, author=args.author)


VERBS = (
    Verb(
        "review",
        "review a branch: changes, checks, discussion; comment on it, or approve it",
        review,
        (
            argument("branch", completes=BRANCH, help="the branch to review"),
            argument("--into", completes=BRANCH, metavar="BRANCH", help="the target of the merge"),
            argument("-m", "--message", help="write a comment"),
            argument("--reply-to", metavar="ID", help="the comment that this one answers"),
            argument("--approve", action="store_true", help="approve this version of the branch"),
            argument("--request-changes", action="store_true", help="ask for changes"),
            argument("--author", help="who says it"),
            argument("--html", metavar="FILE", help="write the page as one file"),
        ),
        "review dev --html review.html",
    ),
)
