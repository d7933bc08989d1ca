"""The tree of errors: what each is, what it says, and that it survives pickling."""

from __future__ import annotations

import builtins
import copy
import inspect
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb import errors
from lance_nb.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    DatasetNotFoundError,
    LanceError,
    ObjectNotFoundError,
    RefNotFoundError,
    StorageError,
    VersionNotFoundError,
)

EXAMPLES = {
    "DatasetNotFoundError": (
        ("s3://b/t.lance", "the folder is empty"),
        (
            "no Lance dataset at 's3://b/t.lance': the folder is empty; expected a folder with a "
            "_versions folder that holds at least one manifest"
        ),
    ),
    "VersionNotFoundError": (
        ("t.lance", 7, "1-3, 5"),
        "version 7 of 't.lance' was not found; available: 1-3, 5",
    ),
    "RefNotFoundError": (
        ("tag", "v1", ("a", "b")),
        "tag 'v1' does not exist; tags that exist: 'a', 'b'",
    ),
    "ColumnNotFoundError": (("x", ("a", "b")), "no column named 'x'; columns: 'a', 'b'"),
    "IndexNotFoundError": (("x", ("a", "b")), "no index named 'x'; indices: 'a', 'b'"),
    "ObjectNotFoundError": (
        ("data/x.lance", "fragment 3"),
        "file 'data/x.lance' does not exist, needed by fragment 3",
    ),
    "ObjectExistsError": (("data/x.lance",), "object 'data/x.lance' already exists"),
    "CorruptFileError": (
        ("data/x.lance", 96, "magic", "zeros", "page 3"),
        (
            "data/x.lance is damaged at byte 96 (page 3): expected magic, found zeros; restore it "
            "from a copy, or check out a version that does not use it"
        ),
    ),
    "MissingPackageError": (
        ("opening s3://", "s3fs", "s3fs"),
        "opening s3:// needs s3fs, which is not installed: pip install s3fs",
    ),
    "RunCancelledError": (
        (3, 8),
        (
            "cancelled after 3 of 8 tasks; nothing was committed, and files that tasks have "
            "written belong to no version (cleanup removes them)"
        ),
    ),
    "StorageError": (
        ("data/x.lance", "Permission denied", "unknown"),
        "cannot access 'data/x.lance': Permission denied",
    ),
}
BUILTINS = {
    "InvalidInputError": ValueError, "SchemaMismatchError": ValueError,
    "InvalidRefError": ValueError,
    "PredicateError": ValueError, "NotFoundError": LookupError,
    "DatasetNotFoundError": FileNotFoundError,
    "VersionNotFoundError": ValueError, "RefNotFoundError": ValueError,
    "ColumnNotFoundError": ValueError, "IndexNotFoundError": KeyError,
    "ObjectNotFoundError": FileNotFoundError, "DatasetAlreadyExistsError": OSError,
    "RefConflictError": ValueError, "ObjectExistsError": FileExistsError,
    "CorruptFileError": OSError,
    "NotSupportedError": NotImplementedError, "MissingPackageError": ImportError,
    "CommitError": OSError,
    "CommitStateUnknownError": OSError,
    "StorageError": OSError,
}  # fmt: skip
CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, LanceError)
]


def example(kind):
    arguments, text = EXAMPLES.get(kind.__name__, (("what happened",), "what happened"))
    return kind(*arguments), text


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_says_what_happened_in_one_line(kind):
    error, text = example(kind)
    assert str(error) == text
    assert "\n" not in text


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_its_fields(kind, protocol):
    error, text = example(kind)
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
    assert type(again) is kind
    assert str(again) == text
    assert again.args == error.args or vars(again) == vars(error)
    assert {name: value for name, value in vars(again).items() if not name.startswith("_")} == {
        name: value for name, value in vars(error).items() if not name.startswith("_")
    }
    assert str(copy.copy(error)) == text


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_also_the_builtin_that_pylance_raises(kind):
    error, _ = example(kind)
    assert isinstance(error, LanceError)
    if kind.__name__ in BUILTINS:
        assert isinstance(error, BUILTINS[kind.__name__])
        assert isinstance(error, KeyError) == (BUILTINS[kind.__name__] is KeyError)
    assert not isinstance(error, AttributeError)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_says_when_it_is_raised(kind):
    assert kind.__doc__
    assert not hasattr(builtins, kind.__name__)


def test_a_dataset_that_is_missing_is_caught_as_pylance_users_do():
    with pytest.raises(ValueError, match="no Lance dataset"):
        raise DatasetNotFoundError("x")
    with pytest.raises(FileNotFoundError):
        raise DatasetNotFoundError("x")


def test_optional_parts_of_a_text_are_left_out():
    assert str(VersionNotFoundError("t", 7)) == "version 7 of 't' was not found"
    assert str(RefNotFoundError("branch", "b")) == "branch 'b' does not exist; no branches exist"
    assert str(ObjectNotFoundError("x")) == "file 'x' does not exist"
    assert CorruptFileError("x").problem == "x is damaged"
    assert str(CorruptFileError("", 3)) == "data is damaged at byte 3"
    assert str(LanceError()) == "LanceError"


def test_long_lists_of_names_are_cut_short():
    names = tuple(f"n{number}" for number in range(50))
    assert str(RefNotFoundError("tag", "x", names)).endswith("'n9' and 40 more")
    assert str(ColumnNotFoundError("x", names)).endswith("'n19' and 30 more")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_text_of_any_length_is_shown_in_few_words_and_kept_whole(kind):
    arguments, _ = EXAMPLES.get(kind.__name__, (("x",), ""))
    first = "a" + "x" * 1_000_000 + "z"
    error = kind(first, *arguments[1:])
    assert len(str(error)) < 1500
    assert "characters ..." in str(error)
    assert error.args[0] == first or first in vars(error).values()


def test_an_error_is_located_by_the_floor_that_knows_the_place():
    error = CorruptFileError("", None, "4 values", "3").located("data/x", 96, "page 2")
    assert error.problem == "data/x is damaged at byte 96 (page 2): expected 4 values, found 3"
    again = error.located("other", 7, "elsewhere")
    assert (again.path, again.offset_bytes, again.place) == ("data/x", 96, "page 2")
    assert CorruptFileError("x", 0).located("y", 5, "").offset_bytes == 0


def test_what_is_damaged_comes_with_what_to_do_and_keeps_it_wherever_it_goes():
    assert str(CorruptFileError("x")) == f"x is damaged; {errors.RESTORE}"
    error = CorruptFileError("", None, "a", "b", advice="call the owner")
    assert str(error) == "data is damaged: expected a, found b"
    error = pickle.loads(pickle.dumps(error.located("x", None, "")))  # noqa: S301
    assert str(error) == "x is damaged: expected a, found b; call the owner"
    longest = CorruptFileError("x", None, "a", "b" * 10_000)
    assert str(longest).endswith(errors.RESTORE)
    assert str(longest).count("characters ...") == 1


def test_a_storage_error_says_whether_the_outcome_is_known():
    assert StorageError("x", "timeout").outcome == "failed"
    assert pickle.loads(pickle.dumps(StorageError("x", "timeout", "unknown"))).outcome == "unknown"  # noqa: S301


@pytest.mark.parametrize(
    ("values", "repeats", "expected"),
    [
        ([3, 42, 17, 5], False, "17 after 42, at index 2"),
        ([3, 3, 2], True, "2 after 3, at index 2"),
        ([3, 3, 2], False, "3 after 3, at index 1"),
        ([5, 9], False, "2 values from 5 to 9"),
        ([], False, "no value"),
    ],
)
def test_an_error_names_the_first_number_that_is_out_of_order(values, repeats, expected):
    assert errors.describe_order(np.array(values, np.uint64), repeats=repeats) == expected


@pytest.mark.parametrize(
    ("values", "repeats", "text"),
    [
        (pa.array(["a", "c", "b"]), False, '"b" after "c", at index 2'),
        (pa.array(["a", "a"]), False, '"a" after "a", at index 1'),
        (pa.array(["a", "a"]), True, '2 values from "a" to "a"'),
        (pa.array([2**62, 1], pa.timestamp("s")), False, "1970-01-01 00:00:01 after <value out of"),
        (pa.array(["y" * 10_000, "x" * 10_000]), False, '"xxxxx'),
        (pa.array(["\x1b[31m", "\x00"]), False, '"⟨U+0000⟩" after "⟨U+001B⟩[31m", at index 1'),
        (pa.array([b"\xff" * 4, b"\x00"]), False, "00 after FFFFFFFF, at index 1"),
        (pa.array([], pa.int8()), False, "no value"),
    ],
    ids=["texts", "equal", "repeated", "no date", "long", "controls", "bytes", "empty"],
)
def test_an_error_of_order_names_values_of_arrow(
    values: pa.Array, repeats: bool, text: str
) -> None:
    error = CorruptFileError(
        "f", None, "values in order", errors.describe_order(values, repeats=repeats)
    )
    assert f"found {text}" in str(error)
    assert len(str(error)) < 500


def test_an_error_of_bytes_names_the_first_of_them() -> None:
    for data, text in ((b"", "no byte"), (b"\x00", "1 byte: 00"), (b"LANCE" * 9, "45 bytes that")):
        assert errors.describe_bytes(data).startswith(text)
        assert errors.describe_bytes(memoryview(data)) == errors.describe_bytes(data)
    assert errors.describe_repeated(np.array([5, 7, 5, 7, 5], np.uint64)) == "5 three times"
    assert errors.describe_repeated(np.array([1, 2])) == "2 different values"


def test_an_extra_is_installed_from_the_checkout_that_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = errors.MissingPackageError("SQL", "DuckDB", "lance-nb[sql]")
    checkout = Path(errors.__file__).parents[1]
    assert (checkout / "pyproject.toml").is_file()
    assert str(error) == (
        f"SQL needs DuckDB, which is not installed: pip install -e '{checkout}[sql]'"
    )
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "lance_nb" / "errors.py"))
    assert error.command == "pip install 'lance-nb[sql]'"
