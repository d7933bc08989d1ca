from __future__ import annotations

import json

import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.reviews import ReviewComment, is_comment_name, review_folder

ONE = ReviewComment("a" * 32, "comment", "dev", 7, "main", "ada", 1_790_000_000_000_000_123, "Hé?")
PATH = f"_refs/reviews/dev/x/{ONE.file_name}"


def test_a_comment_comes_back_as_it_was() -> None:
    assert ReviewComment.from_bytes(ONE.to_bytes(), PATH) == ONE
    assert is_comment_name(ONE.file_name)
    assert not is_comment_name(f"{ONE.file_name}.tmp")
    assert ONE.created_at.year == 2026


@pytest.mark.parametrize(
    "change",
    [{"id": "b" * 32}, {"id": 7}, {"kind": "shell"}, {"version": -1}, {"version": True},
     {"version": 2**63}, {"text": None}, {"text": "x" * 20_001}, {"format": 2}, {"author": ["a"]},
     {"createdAtNs": 10**30}, {"replyTo": 3}, {"into": None}],
)  # fmt: skip
def test_damaged_files_are_refused(change: dict[str, object]) -> None:
    record = json.loads(ONE.to_bytes()) | change
    with pytest.raises(CorruptFileError):
        ReviewComment.from_bytes(json.dumps(record).encode(), PATH)
    for data in (b"", b"[", b"[]", b"\xff", b"[" * 100_000, b" " * 300_000):
        with pytest.raises(CorruptFileError):
            ReviewComment.from_bytes(data, PATH)


def test_names_stay_inside_the_folder() -> None:
    assert review_folder("fix/../../x", "ab12") == "_refs/reviews/fix%2F..%2F..%2Fx/ab12"
    for identifier in ("", "..", "a/b", "a.b", "x" * 65):
        with pytest.raises(InvalidInputError):
            review_folder("dev", identifier)


def test_what_no_file_may_hold_is_refused() -> None:
    for kind, text, reply in (
        ("comment", " ", None),
        ("comment", "x" * 20_001, None),
        ("shout", "x", None),
        ("comment", "x", "../y"),
    ):
        made = ReviewComment("a" * 32, kind, "dev", 1, "main", "ada", 1, text, reply)
        with pytest.raises(InvalidInputError):
            made.to_bytes()
