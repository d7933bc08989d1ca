"""Options as Spark passes them: text, with keys in lower case."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.spark.source.options import SourceOptions


def test_tables_of_a_catalog_are_refused_with_what_works() -> None:
    given = {"owner": "root", "provider": "lance_nb", "path": "file:/x.lance", "location": "/x"}
    with pytest.raises(InvalidInputError, match="CREATE TEMPORARY VIEW name USING lance_nb"):
        SourceOptions.of(given)
    with pytest.raises(InvalidInputError, match=r"path of the dataset is missing.*TEMPORARY VIEW"):
        _ = SourceOptions.of({}).path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("id, name,", ("id", "name")),
        ('["a,b", " c", "[d]"]', ("a,b", " c", "[d]")),
        ("", ()),
        ("[]", ()),
    ],
)
def test_names_are_separated_by_commas_or_a_json_list(text: str, wanted: tuple[str, ...]) -> None:
    options = SourceOptions.of({"columns": text, "allowBases": text})
    assert options.names("columns") == options.bases() == wanted


@pytest.mark.parametrize("text", ["[id]", "[1]", '["a"', '["a"], "b"'])
def test_lists_of_names_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="columns"):
        _ = SourceOptions.of({"columns": text}).columns


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("emb=384, face=128", {"emb": 384, "face": 128}),
        ("a=b=2", {"a=b": 2}),
        ('{"a,b": 2, "c": "3"}', {"a,b": 2, "c": 3}),
        ("", {}),
    ],
)
def test_lengths_of_vectors(text: str, wanted: dict[str, int]) -> None:
    assert SourceOptions.of({"dimensions": text}).dimensions == wanted


@pytest.mark.parametrize("text", ["emb", "emb=", "=2", "emb=0", "emb=-1", '{"emb": 1.5}', "{"])
def test_lengths_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="dimensions"):
        _ = SourceOptions.of({"dimensions": text}).dimensions


@pytest.mark.parametrize("name", ["storage_options", "storageOptions", "STORAGEOPTIONS"])
def test_storage_options_have_two_spellings(name: str) -> None:
    options = SourceOptions.of({"path": "x", name: '{"key": "k"}'})
    assert options.storage_options == {"key": "k"}
    assert options.get("storage_options") == '{"key": "k"}'
    with pytest.raises(InvalidInputError, match="unknown option 'storage-options'"):
        SourceOptions.of({"storage-options": "{}"})


def test_one_option_in_two_spellings_is_refused_unless_they_agree() -> None:
    both = {"storage_options": '{"key": "k"}', "storageOptions": '{"key": "k"}'}
    assert SourceOptions.of(both).storage_options == {"key": "k"}
    with pytest.raises(InvalidInputError, match="'storage_options' is given twice"):
        SourceOptions.of({**both, "storageOptions": '{"key": "other"}'})
    for text in ("x", "[1]"):
        with pytest.raises(InvalidInputError, match="storage_options"):
            _ = SourceOptions.of({"storageOptions": text}).storage_options
