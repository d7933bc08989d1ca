from __future__ import annotations

import pytest

from lance_nb import errors
from lance_nb.explorer.error_card import error_card

RAISED = [
    errors.DatasetNotFoundError("/no/where"),
    errors.VersionNotFoundError("d.lance", 7),
    errors.RefNotFoundError("tag", "v9", ("v1",)),
    errors.CorruptFileError("d.lance/_versions/3.manifest", 12, "magic LANC", "four zeros"),
    errors.NotSupportedError("reader feature flag 1024 is not known"),
    errors.MissingPackageError("Spark", "PySpark", "lance-nb[spark]"),
    errors.ObjectNotFoundError("d.lance/data/x.lance", "fragment 0"),
    errors.StorageError("s3://bucket/x", "connection refused"),
    errors.InvalidRefError("'?' is not a version"),
    errors.ColumnNotFoundError("x", ("a",)),
    errors.InternalError("impossible"),
    errors.CommitConflictError("somebody was faster"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_error_says_what_happened_and_what_to_do(error: Exception) -> None:
    card = error_card(error)
    assert card.title
    assert card.hint
    assert card.kind == type(error).__name__
    assert card.message


def test_the_place_is_named_with_its_byte() -> None:
    card = error_card(errors.CorruptFileError("d/_versions/3.manifest", 4096, "a footer"))
    assert card.where == "d/_versions/3.manifest, byte 4,096"


def test_a_damaged_file_says_what_to_do_once() -> None:
    card = error_card(errors.CorruptFileError("d/x", None, "a footer", "none"))
    assert card.message == "d/x is damaged: expected a footer, found none"
    assert card.hint == "Restore it from a copy, or check out a version that does not use it."
    manifest = errors.CorruptFileError("", None, "a footer")
    manifest = manifest.located("d/_versions/3.manifest", 4, "")
    assert error_card(manifest).hint == "Restore it from a copy, or open another version."
    assert str(manifest).endswith("; restore it from a copy, or open another version")
    other = errors.CorruptFileError("d/x", advice="delete \u202e")
    assert error_card(other).hint.startswith("Delete")
    assert "\u202e" not in error_card(other).hint


def test_notes_are_part_of_the_message() -> None:
    error = errors.DatasetNotFoundError("demo.lanse")
    error.add_note("did you mean 'demo.lance'?")
    assert "did you mean" in error_card(error).message


def test_an_error_that_is_not_ours_is_called_our_fault() -> None:
    card = error_card(KeyError("secret\u202e"))
    assert "lance_nb" in card.title
    assert "report" in card.hint
    assert "\u202e" not in card.message
    assert len(error_card(ValueError("x" * 10**6)).message) < 4000
