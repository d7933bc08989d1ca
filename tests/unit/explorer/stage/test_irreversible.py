"""Acts that take something away: what is shown is what is done, and nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, RefConflictError
from lance_nb.explorer.stage.act_review import NO_UNDO, with_screen, with_staged, word_to_type
from lance_nb.explorer.stage.card import COMMITTED, READY, Card, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.staging_area import StagingArea
from tests.unit.explorer.conftest import MORE

Add = Callable[..., Card]
Newest = Callable[[], LanceDataset]


def grow(dataset: LanceDataset, count: int) -> None:
    """Commit ``count`` versions, each with all rows in a file of its own."""
    for one in range(count):
        rows = pa.table({"id": range(one, one + 3), "price": [1.0] * 3})
        lance_nb.write_dataset(rows, dataset.uri, mode="overwrite")


def words(card: Card) -> list[str]:
    assert card.review is not None
    return [one.text for one in card.review.consequences]


def test_a_clean_up_that_showed_nothing_removes_nothing(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    """A card with "0 versions" once removed 20 versions, which were committed after it."""
    card = add("cleanup", keep=1)
    assert card_json(card)["review"]["button"] == "Nothing to remove"
    grow(dataset, 20)
    card.check_outdated()
    assert card_json(card)["review"]["outdated"] is True
    area.commit(card.id, None, ProgressReporter())
    assert (card.state, len(newest().version_numbers())) == (READY, 21)
    shown = card_json(card)["review"]
    assert (shown["button"], shown["outdated"]) == ("Remove 20 versions", False)


def test_a_clean_up_is_shown_again_when_it_would_remove_more(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    grow(dataset, 3)
    card = add("cleanup", keep=2)
    assert card_json(card)["review"]["button"] == "Remove 2 versions"
    grow(dataset, 1)
    area.commit(card.id, None, ProgressReporter())
    assert card.state == READY
    assert "Nothing was done" in card_json(card)["lines"][0]
    assert card_json(card)["review"]["button"] == "Remove 3 versions"
    assert newest().version_numbers() == [1, 2, 3, 4, 5]
    area.commit(card.id, None, ProgressReporter())
    assert card.state == COMMITTED
    assert newest().version_numbers() == [4, 5]
    assert card_json(card)["review"] is None


def test_a_version_that_was_tagged_after_the_preview_is_shown_again(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    grow(dataset, 3)
    card = add("cleanup", keep=1)
    dataset.tags.create("keep-me", 2)
    area.commit(card.id, None, ProgressReporter())
    assert card.state == READY
    assert card_json(card)["review"]["button"] == "Remove 2 versions"
    assert "Tagged versions stay: keep-me (main:2)." in words(card)
    assert newest().version_numbers() == [1, 2, 3, 4]


def test_the_consequences_are_what_the_clean_up_then_does(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    grow(dataset, 3)
    dataset.create_branch("dev", 2)
    card = add("cleanup", keep=1)
    found = words(card)
    assert found[0] == "Removes 2 versions: main:1, main:3."
    assert found[1].startswith("Frees ")
    assert "3 data files" in found[1]  # main:1 has two, main:3 one
    assert found[2].startswith("These data files store 23 rows;")
    assert found[3:5] == [
        "Versions that branches started from stay: main:2 for dev.",
        "2 versions of main stay, the newest is main:4.",
    ]
    assert found[-1] == NO_UNDO
    area.commit(card.id, None, ProgressReporter())
    assert card.done.startswith("2 versions and 3 data files deleted")
    assert newest().version_numbers() == [2, 4]


def test_many_versions_are_removed_only_with_the_word(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    grow(dataset, 10)
    card = add("cleanup", keep=1)
    word = card_json(card)["review"]["typed"]
    assert word == dataset.name
    for typed in ("", word[:-1], word.upper()):
        with pytest.raises(InvalidInputError, match="cannot be undone: type"):
            area.commit(card.id, None, ProgressReporter(), typed)
    assert len(newest().version_numbers()) == 11
    area.commit(card.id, None, ProgressReporter(), word)
    assert newest().version_numbers() == [11]


@pytest.mark.parametrize(
    ("name", "versions", "size", "word"),
    [
        ("a.lance", 9, 10**9 - 1, ""),
        ("a.lance", 10, 0, "a.lance"),
        ("a.lance", 0, 10**9, "a.lance"),
        ("a\u202eb", 10, 0, "delete"),
        ("é", 10, 0, "delete"),
        (" a ", 10, 0, "delete"),
        ("a" * 61, 10, 0, "delete"),
        ("", 10, 0, "delete"),
    ],
)
def test_the_word_can_be_typed(name: str, versions: int, size: int, word: str) -> None:
    assert word_to_type(name, versions, size) == word


def test_acts_that_cannot_be_undone_are_not_committed_with_others(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    grow(dataset, 2)
    add("append", source="more")
    card = add("cleanup", keep=1)
    assert "“Clean up old versions: keep 1” cannot be undone" in area.why_not_each()
    for commit in (area.commit_each, area.commit_together):
        with pytest.raises(InvalidInputError, match="by itself in the Stage tab"):
            commit(None, ProgressReporter())
    assert newest().version == 3
    area.remove(card.id)
    assert area.why_not_each() == ""


def test_the_screen_and_staged_changes_are_named(dataset: LanceDataset, add: Add) -> None:
    grow(dataset, 2)
    review = add("cleanup", keep=1).review
    assert review is not None
    screen = with_screen(review, (None, 1), "main:3")
    assert screen.consequences[-2].text == (
        "The version on screen, main:1, is removed: the view goes to main:3."
    )
    assert screen.consequences[-1].text == NO_UNDO
    assert screen.key != review.key
    assert with_screen(review, (None, 3), "main:3") is review
    assert with_screen(review, ("dev", 1), "main:3") is review
    staged = with_staged(review, [("Delete rows", None, 2), ("Append", None, 3), ("x", "dev", 2)])
    assert staged.consequences[-2].text == (
        "1 staged change was planned on a removed version: re-run Delete rows."
    )


def test_a_branch_is_deleted_as_it_was_shown(
    dataset: LanceDataset, area: StagingArea, add: Add
) -> None:
    dev = dataset.create_branch("dev")
    dev.delete("id = 1")
    card = add("branch", action="delete", name="dev")
    shown = card_json(card)["review"]
    assert (shown["button"], shown["final"]) == ("Delete branch dev with 1 version", True)
    assert words(card)[-1] == NO_UNDO
    dev.delete("id = 2")
    area.commit(card.id, None, ProgressReporter())
    assert (card.state, dataset.branches.names()) == (READY, ["dev"])
    assert card_json(card)["review"]["button"] == "Delete branch dev with 2 versions"
    area.commit(card.id, None, ProgressReporter())
    assert dataset.branches.names() == []


def test_a_branch_in_use_has_no_button(dataset: LanceDataset, area: StagingArea, add: Add) -> None:
    dataset.create_branch("dev").tags.create("v1", ("dev", 1))
    card = add("branch", action="delete", name="dev")
    assert card_json(card)["review"]["empty"] is True
    assert any(one.startswith("Refused: tags point to its versions") for one in words(card))
    with pytest.raises(RefConflictError):
        area.commit(card.id, None, ProgressReporter())


@pytest.mark.parametrize(
    ("verb", "args", "button", "lost"),
    [
        ("drop_columns", {"columns": ["price"]}, "Drop column price",
         "The values of price in 20 rows leave the newest version."),
        ("overwrite", {"source": "more"}, "Overwrite 20 rows",
         "All 20 rows are replaced by 2 rows."),
    ],
)  # fmt: skip
def test_what_leaves_the_newest_version_is_named(
    verb: str, args: dict[str, Any], button: str, lost: str, add: Add
) -> None:
    card = add(verb, **args)
    shown = card_json(card)["review"]
    assert (shown["button"], shown["final"], shown["typed"]) == (button, False, "")
    assert words(card)[0] == lost
    assert words(card)[-1] == ("Can be undone by restoring main:1, until a clean-up removes it.")
    card.commit(None, ProgressReporter())
    assert card.state == COMMITTED


def test_indices_on_dropped_columns_are_named(dataset: LanceDataset, add: Add) -> None:
    dataset.create_scalar_index("price", "BTREE")
    assert "Indices on them are dropped: price_idx." in words(
        add("drop_columns", columns=["price"])
    )


@pytest.mark.parametrize(
    ("verb", "args"), [("overwrite", {"source": "more"}), ("delete", {"where": "true"})]
)
def test_what_a_change_drops_besides_is_a_line_of_its_card(
    verb: str, args: dict[str, Any], dataset: LanceDataset, add: Add
) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 40, pa.float32()), 2)
    dataset.merge(pa.table({"id": range(20), "v": vectors}), "id")
    dataset.create_index("v", "IVF_FLAT", num_partitions=1)
    card = add(verb, **args)
    part = "index 'v_idx' on 'v'"
    assert {"label": "drops", "value": part} in card_json(card)["facts"]
    assert (f"Drops {part}." in words(card)) if verb == "overwrite" else card.review is None
    dataset.drop_index("v_idx")
    facts = card_json(add(verb, **args))["facts"]
    assert all(fact["label"] != "drops" for fact in facts)


@pytest.mark.parametrize("act", ["delete", "move"])
def test_tags_say_what_loses_its_protection(
    act: str, dataset: LanceDataset, area: StagingArea, add: Add
) -> None:
    grow(dataset, 1)
    dataset.tags.create("v1", 1)
    card = add("tag", action=act, name="v1")
    shown = card_json(card)["review"]
    assert (shown["button"], shown["final"]) == (f"{act.capitalize()} tag v1", False)
    assert "main:1 loses its protection: the next clean-up may delete it." in words(card)
    area.commit(card.id, None, ProgressReporter())
    assert card.state == COMMITTED


def test_a_commit_that_starts_a_clean_up_says_so(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    dataset.update_config({
        "lance.auto_cleanup.interval": "4", "lance.auto_cleanup.retain_versions": "1",
    })  # fmt: skip
    assert add("append", source="more").review is None  # version 3 starts none
    lance_nb.write_dataset(MORE, dataset.uri, mode="append")
    card = add("delete", where="id = 1")  # version 4 does
    shown = card_json(card)["review"]
    assert (shown["button"], shown["final"]) == ("Commit and remove 2 versions", True)
    assert "starts a clean-up after this commit" in words(card)[0]
    area.commit(card.id, None, ProgressReporter())
    assert (card.version, newest().version_numbers()) == (4, [3, 4])


def test_a_configuration_that_makes_no_sense_is_named(dataset: LanceDataset, add: Add) -> None:
    dataset.update_config({
        "lance.auto_cleanup.interval": "often", "lance.auto_cleanup.retain_versions": "1",
    })  # fmt: skip
    card = add("append", source="more")
    assert words(card)[0].startswith("The automatic clean-up of this dataset will not run: ")
    card.commit(None, ProgressReporter())
    assert card.state == COMMITTED


def test_a_commit_that_came_to_start_a_clean_up_is_shown_first(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    dataset.update_config({
        "lance.auto_cleanup.interval": "4", "lance.auto_cleanup.retain_versions": "1",
    })  # fmt: skip
    card = add("delete", where="id = 1")
    assert card.review is None
    lance_nb.write_dataset(MORE, dataset.uri, mode="append")  # now it would be version 4
    area.commit(card.id, None, ProgressReporter())
    assert (card.state, newest().version_numbers()) == (READY, [1, 2, 3])
    assert card_json(card)["review"]["button"] == "Commit and remove 2 versions"
