"""The verb that reviews a branch: what it changes, checks, discussion."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields

from lance_nb.dataset.reviews import Review
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.static_rendering import StaticRendering
from lance_nb.format.reviews import ReviewComment
from lance_nb.magic.context import MagicContext
from lance_nb.magic.verb import BRANCH, Result, argument, verb


@verb(
    argument("branch", completes=BRANCH, help="the branch to review"),
    argument("--into", completes=BRANCH, metavar="BRANCH", help="the target of the merge"),
    argument("-m", "--message", help="write a comment"),
    argument("--reply-to", metavar="ID", help="the comment that this one answers"),
    argument("--approve", action="store_true", help="approve this version of the branch"),
    argument("--request-changes", action="store_true", help="ask for changes"),
    argument("--author", help="who says it"),
    argument("--html", metavar="FILE", help="write the page as one file"),
    example="review dev --html review.html",
)
def review(context: MagicContext, args: Namespace) -> Result:
    """Review a branch: changes, checks, discussion; comment on it, or approve it."""
    from lance_nb.explorer.review.review_page import review_picture

    review = context.dataset.branches.review(args.branch, args.into)
    _write(review, args)
    if args.html is not None:
        review.to_html(args.html)
    comments = review.comments()
    approved = review.is_approved
    state = "approved" if approved else "not approved"
    version = f"{text.name(review.branch)}:{review.source.version}"
    lines = [f"Review of {version} into {text.name(review.into)}: {state}", repr(review.diff)]
    lines += [f"checks: {review.checks.sentence}", *map(_said, comments)]
    names = [field.name for field in fields(ReviewComment)]
    data = {
        "branch": review.branch,
        "version": review.source.version,
        "into": review.into,
        "approved": approved,
        "checks": review.checks.status,
        "comments": [{name: getattr(comment, name) for name in names} for comment in comments],
    }
    return Result(review, StaticRendering("\n".join(lines), review_picture(review)), data)


def _said(comment: ReviewComment) -> str:
    words = f": {text.line(comment.text)}" if comment.text else ""
    author = text.name(comment.author)
    return f"{comment.created_at:%Y-%m-%d %H:%M} {author} {comment.kind}{words} ({comment.id})"


def _write(review: Review, args: Namespace) -> None:
    message = args.message or ""
    if args.approve and args.request_changes:
        raise InvalidInputError("--approve and --request-changes exclude each other")
    if args.approve:
        review.approve(message, author=args.author)
    elif args.request_changes:
        review.request_changes(message, author=args.author)
    elif message:
        review.comment(message, reply_to=args.reply_to, author=args.author)


VERBS = (review,)
