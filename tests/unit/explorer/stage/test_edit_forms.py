from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.stage.edit_forms import VERBS, EditForm, type_of


def test_empty_arguments_are_left_out_and_texts_trimmed() -> None:
    form = EditForm.of("delete", {"where": "  id = 1 "})
    assert form == EditForm("delete", {"where": "id = 1"})
    given = {"set": {"a": "1"}, "where": ""}
    assert EditForm.of("update", given).args == {"set": {"a": "1"}}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_what_is_missing(verb: str) -> None:
    required = any(one.is_required for one in VERBS[verb].fields)
    if not required:
        assert EditForm.of(verb, {}).args == {}
        return
    with pytest.raises(InvalidInputError, match="is missing"):
        EditForm.of(verb, {})


def test_other_names_of_a_verb_are_understood() -> None:
    assert EditForm.of("materialize", {}) == EditForm(
        "compact", {"materialize_deletions_threshold": 0.0}
    )
    assert EditForm.of("insert", {"source": "df"}).verb == "append"


@pytest.mark.parametrize(
    ("verb", "args", "words"),
    [
        ("format", {}, "there is no change"),
        (7, {}, "there is no change"),
        ("delete", [], "an object"),
        ("delete", {"where": "x", "force": True}, "no argument 'force'"),
        ("delete", {"where": "x" * 120_001}, "up to 120,000"),
        ("delete", {"where": 7}, "a text"),
        ("update", {"set": "a=1"}, "columns with their new values"),
        ("update", {"set": {"a": 1}}, "a must be a text"),
        ("drop_columns", {"columns": {"a": 1}}, "a list"),
        ("compact", {"target_rows_per_fragment": "many"}, "a number"),
        ("compact", {"target_rows_per_fragment": 1.5}, "whole number"),
        ("compact", {"materialize_deletions_threshold": -1}, "not negative"),
        ("cleanup", {"keep": True}, "a number"),
        ("tag", {"action": "rename", "name": "v1"}, "one of create, move, delete"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(verb: Any, args: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        EditForm.of(verb, args)


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="engine"):
        EditForm.of("delete", {"where": "x"}, "gpu")


def test_types_are_read_by_name_and_vectors_by_their_length() -> None:
    assert type_of("int32") == pa.int32()
    assert type_of("timestamp[us]") == pa.timestamp("us")
    assert type_of(" float16[128] ") == pa.list_(pa.float16(), 128)
    with pytest.raises(InvalidInputError, match="is not a type"):
        type_of("int")
    with pytest.raises(InvalidInputError, match="is not a type"):
        type_of("blob[4]")
