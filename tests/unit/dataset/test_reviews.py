from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.reviews import is_approved, read_comments
from lance_nb.errors import (
    AlreadyExistsError,
    InvalidInputError,
    ObjectExistsError,
    RefNotFoundError,
    StorageError,
)
from lance_nb.format.reviews import ReviewComment
from lance_nb.storage.base import Store
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.registry import open_store
from tests.support.written_tables import make, rows, uri

__all__ = ["make", "rows", "uri"]

COMMENTS = int(os.environ.get("LANCE_NB_RACING_COMMENTS", "1000"))


@pytest.fixture
def dataset(make: Callable[..., LanceDataset]) -> LanceDataset:
    made = make()
    made.create_branch("dev").delete("id = 3")
    made.insert(made.take([0]))
    return made


def test_only_the_changes_of_the_branch_are_shown(dataset: LanceDataset) -> None:
    review = dataset.branches.review("dev")
    assert (review.branch, review.into) == ("dev", "main")
    assert (review.diff.counts.rows_in, review.diff.counts.rows_deleted) == (0, 1)
    dataset.branches.merge("dev")
    dataset.checkout_version(("dev", None)).delete("id = 4")
    # What is merged is no change of the branch any more.
    assert dataset.checkout_latest().branches.review("dev").diff.counts.rows_deleted == 1


def test_checks_are_those_of_the_target_at_the_branch(dataset: LanceDataset) -> None:
    dataset.expectations.add_row_count(minimum=10)
    assert dataset.check().ok
    assert not dataset.branches.review("dev").checks.ok


def test_an_approval_is_for_the_version_that_was_looked_at(dataset: LanceDataset) -> None:
    review = dataset.branches.review("dev")
    review.approve("Fine.", author="ada")
    assert dataset.branches.review("dev").is_approved
    review.request_changes("No.", author="bob")
    assert not dataset.branches.review("dev").is_approved
    review.approve(author="bob")
    assert dataset.branches.review("dev").is_approved
    dataset.checkout_version(("dev", None)).delete("id = 5")
    assert not dataset.branches.review("dev").is_approved
    assert not is_approved([], 1)


def test_a_branch_of_the_same_name_has_none_of_the_comments(dataset: LanceDataset) -> None:
    old = dataset.branches.review("dev")
    old.comment("Why?", author="ada")
    dataset.branches.delete("dev")
    dataset.create_branch("dev")
    new = dataset.branches.review("dev")
    assert new.comments() == []
    new.comment("Again?", author="bob")
    found = {one.identifier: one for one in dataset.branches.reviews()}
    assert (found[old.identifier].is_deleted, found[new.identifier].is_deleted) == (True, False)
    root = dataset.opened[0].root
    kept = read_comments(root, "dev", old.identifier)
    assert [one.text for one in kept if isinstance(one, ReviewComment)] == ["Why?"]
    assert dataset.branches.delete_review("dev", old.identifier) == 1
    assert [one.identifier for one in dataset.branches.reviews()] == [new.identifier]


def test_a_damaged_comment_hides_no_other(dataset: LanceDataset) -> None:
    review = dataset.branches.review("dev")
    made = review.comment("first", author="ada")
    root = dataset.opened[0].root
    folder = f"_refs/reviews/dev/{review.identifier}"
    root.write(f"{folder}/{made.file_name.replace(made.id, 'f' * 32)}", b"{")
    root.write(f"{folder}/notes.txt", b"?")
    assert [one.text for one in review.comments()] == ["first"]
    assert len(review.problems) == 1


def test_what_is_refused(dataset: LanceDataset) -> None:
    review = dataset.branches.review("dev")
    for call in (
        lambda: review.comment("  "),
        lambda: review.comment(7),
        lambda: review.comment("x", reply_to="../../y"),
        lambda: dataset.branches.review("main"),
        lambda: dataset.branches.review("dev", "dev"),
        lambda: dataset.branches.delete_review("dev", "../.."),
    ):
        with pytest.raises(InvalidInputError):
            call()
    with pytest.raises(RefNotFoundError):
        dataset.branches.review("nope")
    assert review.comments() == []


def test_texts_that_no_file_can_hold_are_replaced(dataset: LanceDataset) -> None:
    review = dataset.branches.review("dev")
    review.comment("a\ud800b", author="ada")
    assert review.comments()[0].text == "a?b"


def race(uri: str, count: int, threads: int = 16) -> list[str]:
    """Write comments from many threads, each with a session of its own; return all texts."""

    def write(number: int) -> None:
        lance_nb.dataset(uri).branches.review("dev").comment(f"number {number}", author="x")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(count)))
    return [one.text for one in lance_nb.dataset(uri).branches.review("dev").comments()]


@pytest.mark.parametrize("place", ["memory", "local"])
def test_racing_comments_lose_none(place: str, uri: str, tmp_path: Path) -> None:
    from lance_nb.dataset.reviews import write_comment

    target = uri if place == "memory" else str(tmp_path / "a.lance")
    lance_nb.write_dataset({"id": [1, 2]}, target).create_branch("dev")
    assert len(race(target, 40)) == 40
    # The rest without opening the dataset each time; all with one time, so that ids alone differ.
    root = open_store(target, None)
    identifier = lance_nb.dataset(target).branches.review("dev").identifier

    def write(number: int) -> None:
        made = ReviewComment(
            f"{number:032x}", "comment", "dev", 1, "main", "x", 5, f"late {number}"
        )
        write_comment(root, made, identifier)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(COMMENTS)))
    found = read_comments(root, "dev", identifier)
    texts = {one.text for one in found if isinstance(one, ReviewComment)}
    assert len(found) == COMMENTS + 40
    assert {f"late {number}" for number in range(COMMENTS)} <= texts


def test_a_comment_is_never_written_over(dataset: LanceDataset) -> None:
    from lance_nb.dataset.reviews import write_comment

    root, review = dataset.opened[0].root, dataset.branches.review("dev")
    first = ReviewComment("1" * 32, "comment", "dev", 1, "main", "a", 5, "first")
    write_comment(root, first, review.identifier)
    write_comment(root, first, review.identifier)  # a retry after a lost reply
    with pytest.raises(AlreadyExistsError):
        other = ReviewComment("1" * 32, "comment", "dev", 1, "main", "a", 5, "second")
        write_comment(root, other, review.identifier)
    assert [one.text for one in review.comments()] == ["first"]


class LostReply:
    """A store whose exclusive writes happen, and report that nobody knows."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def write_if_absent(self, path: str, data: bytes) -> None:
        self._store.write_if_absent(path, data)
        raise StorageError(path, "the reply was lost", "unknown")


def test_a_lost_reply_is_read_back() -> None:
    from lance_nb.dataset.reviews import write_comment

    store = open_store("memory://lost-reply/a.lance", None)
    made = ReviewComment("2" * 32, "comment", "dev", 1, "main", "a", 5, "once")
    write_comment(LostReply(store), made, "abc")
    assert read_comments(store, "dev", "abc") == [made]


def test_stores_refuse_a_name_that_exists(tmp_path: Path) -> None:
    for store in (LocalStore(str(tmp_path)), MemoryStore("comments")):
        store.write_if_absent("_refs/reviews/a/b/c.json", b"1")
        with pytest.raises(ObjectExistsError):
            store.write_if_absent("_refs/reviews/a/b/c.json", b"2")
