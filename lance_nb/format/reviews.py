"""Comments and approvals of the review of a branch: small JSON files beside the refs.

Layout::

    _refs/reviews/<branch>/<identifier>/<time>-<id>.json

    <branch>       the name, percent-encoded as in ``_refs/branches``
    <identifier>   the unique id of the branch: a branch that is created again under the same name
                   has another one, and none of the old comments
    <time>         nanoseconds since 1970, 20 digits: names sort by time
    <id>           a UUID of 32 hex digits

    {"format": 1, "id": "<id>", "kind": "comment" | "approval" | "changes-requested",
     "branch": "dev", "version": 7, "into": "main", "author": "ada", "createdAtNs": 1790000000000,
     "text": "...", "replyTo": "<id>" | null}

Each comment is a file of its own, written once, by a put that fails if the name exists; nothing is
ever changed in place. So writers never meet, and 1,000 that race lose none. ``version`` is the
version of the branch that was looked at: an approval holds for that version alone.

Deleting a branch leaves its comments, as the record of a discussion. Other readers and writers
ignore the folder: pylance lists ``_refs/tags`` and ``_refs/branches`` only, and no clean-up, ours
or pylance's, looks into it.

Limits: a text has up to ``TEXT_CHARS_MAX`` characters, a file up to ``RECORD_BYTES_MAX`` bytes.
Source: our own.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args
from urllib.parse import quote

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.value_classes import dataclass

FOLDER = "_refs/reviews"
TEXT_CHARS_MAX = 20_000
AUTHOR_CHARS_MAX = 200
RECORD_BYTES_MAX = 200_000
FORMAT = 1

CommentKind = Literal["comment", "approval", "changes-requested"]
KINDS: tuple[str, ...] = get_args(CommentKind)

_NAME = re.compile(r"(\d{20})-([0-9a-f]{32})\.json")
_ID = re.compile(r"[0-9a-f]{32}")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]{1,64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_MAX = 253_402_300_799 * 10**9


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """One comment or approval. ``reply_to`` is the id of another comment.

    Examples:
        >>> _ = ds.create_branch("dev")
        >>> comment = ds.branches.review("dev").comment("Looks right.", author="ada")
        >>> comment.kind, comment.author, comment.version, comment.text
        ('comment', 'ada', 1, 'Looks right.')
        >>> comment.created_at.tzinfo, comment.file_name.endswith(f"-{comment.id}.json")
        (datetime.timezone.utc, True)
        >>> path = f"_refs/reviews/dev/x/{comment.file_name}"
        >>> lance_nb.ReviewComment.from_bytes(comment.to_bytes(), path) == comment
        True
    """

    id: str
    kind: str
    branch: str
    version: int
    into: str
    author: str
    created_at_ns: int
    text: str
    reply_to: str | None = None

    @property
    def created_at(self) -> datetime:
        """When it was written (aware, UTC)."""
        return _EPOCH + timedelta(microseconds=self.created_at_ns // 1000)

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.created_at_ns:020d}-{self.id}.json"

    def to_bytes(self) -> bytes:
        """Return the file. Raises InvalidInputError for what no file may hold."""
        if self.kind not in KINDS:
            raise InvalidInputError(f"{self.kind!r} is not one of {', '.join(KINDS)}")
        if len(self.text) > TEXT_CHARS_MAX:
            raise InvalidInputError(f"a comment has at most {TEXT_CHARS_MAX:,} characters")
        if self.kind == "comment" and not self.text.strip():
            raise InvalidInputError("the comment is empty")
        if self.reply_to is not None and not _ID.fullmatch(self.reply_to):
            raise InvalidInputError(f"{self.reply_to!r:.80} is not the id of a comment")
        record = {
            "format": FORMAT, "id": self.id, "kind": self.kind, "branch": self.branch,
            "version": self.version, "into": self.into, "author": self.author[:AUTHOR_CHARS_MAX],
            "createdAtNs": self.created_at_ns, "text": self.text, "replyTo": self.reply_to,
        }  # fmt: skip
        try:
            return json.dumps(record, ensure_ascii=False, indent=1).encode()
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"a comment must be Unicode text: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str) -> ReviewComment:
        """Read a file.

        Args:
            data: its bytes.
            path: where it lies; its name has the id.

        Raises CorruptFileError.
        """
        return _parsed(data, path)


def _parsed(data: bytes | memoryview, path: str) -> ReviewComment:
    if len(data) > RECORD_BYTES_MAX:
        raise CorruptFileError(path, None, "a comment", f"{len(data):,} bytes")
    try:
        parsed = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, None, "JSON", str(error)) from error
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        kind = f"format {parsed.get('format')!r:.40}" if isinstance(parsed, dict) else "no object"
        raise CorruptFileError(path, None, f"an object with format {FORMAT}", kind)
    named = _NAME.fullmatch(path.rpartition("/")[2])
    comment = ReviewComment(
        id=_text(parsed, "id", path, 32),
        kind=_text(parsed, "kind", path, 40),
        branch=_text(parsed, "branch", path, 1000),
        version=_number(parsed, "version", path),
        into=_text(parsed, "into", path, 1000),
        author=_text(parsed, "author", path, 1000),
        created_at_ns=_number(parsed, "createdAtNs", path),
        text=_text(parsed, "text", path, TEXT_CHARS_MAX),
        reply_to=None if parsed.get("replyTo") is None else _text(parsed, "replyTo", path, 32),
    )
    if comment.kind not in KINDS:
        expected = f"one of the kinds {', '.join(sorted(KINDS))}"
        raise CorruptFileError(path, None, expected, repr(comment.kind))
    if named is None or named[2] != comment.id:
        raise CorruptFileError(path, None, "the id of the file name", repr(comment.id))
    if comment.created_at_ns > _NS_MAX:
        found_ns = str(comment.created_at_ns)
        raise CorruptFileError(path, None, f"a time of at most {_NS_MAX} ns", found_ns)
    return comment


def _text(fields: dict[str, Any], field: str, path: str, chars_max: int) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or len(value) > chars_max:
        raise CorruptFileError(path, None, f"a text of up to {chars_max} characters", field)
    return value


def _number(fields: dict[str, Any], field: str, path: str) -> int:
    value = fields.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise CorruptFileError(path, None, "a whole number below 2**63", field)
    return value


def is_comment_name(name: str) -> bool:
    """Return whether a file name is that of a comment."""
    return _NAME.fullmatch(name) is not None


def review_folder(branch: str, identifier: str) -> str:
    """Return the folder of the comments of a branch. Raises InvalidInputError."""
    if not _IDENTIFIER.fullmatch(identifier):
        raise InvalidInputError(f"{identifier!r:.80} is not the identifier of a branch")
    return f"{FOLDER}/{quote(branch, safe='')}/{identifier}"
