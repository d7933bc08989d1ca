"""Verbs of versions, branches, tags and clones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.verbs.verb import Verb, branch, branched, opened, rows

PIN = ("tag",)
UNFINISHED = ("unfinished",)


def _both_sides(path: str) -> None:
    branched(path)
    opened(path).insert(rows(700))


def _changed(row_on_main: int) -> Callable[[str], None]:
    """Return a preparation that changes row 5 on the branch, and a row on main."""

    def prepare(path: str) -> None:
        opened(path).create_branch("dev").update({"n": "n + 100"}, where="id = 5")
        opened(path).update({"n": "n + 200"}, where=f"id = {row_on_main}")

    return prepare


def _tagged(path: str) -> None:
    opened(path).tags.create("kept", 1)


def _tagged_branch(path: str) -> None:
    branched(path)
    opened(path).tags.create("kept", ("dev", 2))


def _comment(dataset: Any) -> None:
    dataset.branches.review("dev").comment("Why these rows?", author="ada")


def _commented(path: str) -> None:
    branched(path)
    _comment(opened(path))


def _delete_review(dataset: Any) -> None:
    dataset.branches.delete_review("dev", dataset.branches.review("dev").identifier)


HISTORY_VERBS: dict[str, Verb] = {
    "restore": Verb(lambda ds: ds.checkout_version(1).restore()),
    "restore on a branch": Verb(
        lambda ds: ds.checkout_version(("dev", 2)).restore(), branched
    ),
    "staged restore": Verb(lambda ds: ds.stage().restore(1).commit()),
    "create_branch": Verb(lambda ds: ds.create_branch("dev", 2), between=UNFINISHED),
    "create_branch from a branch": Verb(
        lambda path: branch(path).create_branch("dev2"), branched, on=None, between=UNFINISHED
    ),
    "create_branch with a slash": Verb(
        lambda ds: ds.create_branch("team/dev", 2), between=UNFINISHED
    ),
    "branches.replace_metadata": Verb(
        lambda ds: ds.branches.replace_metadata("dev", {"key": "new"}), branched
    ),
    "branches.delete": Verb(
        lambda ds: ds.branches.delete("dev"), branched, between=UNFINISHED
    ),
    "branches.delete, forced": Verb(
        lambda ds: ds.branches.delete("dev", force=True), _tagged_branch, between=UNFINISHED
    ),
    "branches.review, a comment": Verb(_comment, branched, commits=False),
    "branches.delete_review": Verb(_delete_review, _commented, commits=False),
    "branches.merge": Verb(lambda ds: ds.branches.merge("dev"), _both_sides, between=PIN),
    "branches.merge with copied files": Verb(
        lambda ds: ds.branches.merge("dev", copy=True), _both_sides
    ),
    "branches.merge, fast": Verb(lambda ds: ds.branches.merge("dev"), branched, between=PIN),
    "branches.merge of changed rows": Verb(
        lambda ds: ds.branches.merge("dev", key="id"), _changed(6), between=PIN
    ),
    "branches.merge of a conflict": Verb(
        lambda ds: ds.branches.merge("dev", key="id", on_conflict="theirs"), _changed(5),
        between=PIN,
    ),
    "branches.merge of every commit": Verb(
        lambda ds: ds.branches.merge("dev", squash=False), _both_sides, between=PIN
    ),
    "branches.merge into a branch": Verb(
        lambda ds: ds.branches.merge("main"), _both_sides, on="dev", between=(*PIN, "branch")
    ),
    "branches.plan_merge": Verb(
        lambda ds: ds.branches.plan_merge("dev").commit(), _both_sides, between=PIN
    ),
    "cherry_pick": Verb(lambda ds: ds.cherry_pick(("dev", 3)), _both_sides, between=PIN),
    "cherry_pick with copied files": Verb(
        lambda ds: ds.cherry_pick(("dev", 3), copy=True), _both_sides
    ),
    "revert": Verb(lambda ds: ds.revert(2)),
    "revert of a delete": Verb(lambda ds: ds.revert(3)),
    "tags.create": Verb(lambda ds: ds.tags.create("kept", 2)),
    "tags.create on a branch": Verb(lambda ds: ds.tags.create("kept", ("dev", None)), branched),
    "tags.update": Verb(lambda ds: ds.tags.update("kept", 2), _tagged),
    "tags.update to a branch": Verb(
        lambda ds: ds.tags.update("kept", ("dev", 3)), _tagged_branch
    ),
    "tags.replace_metadata": Verb(
        lambda ds: ds.tags.replace_metadata("kept", {"k": "v"}), _tagged
    ),
    "tags.delete": Verb(lambda ds: ds.tags.delete("kept"), _tagged),
    "shallow_clone": Verb(lambda ds: ds.shallow_clone(f"{ds.uri}-clone", 2), at="-clone"),
    "shallow_clone of a branch": Verb(
        lambda ds: ds.shallow_clone(f"{ds.uri}-clone", ("dev", None)), branched, at="-clone"
    ),
    "deep_clone": Verb(lambda ds: ds.deep_clone(f"{ds.uri}-clone", 2), at="-clone"),
    "deep_clone of a branch": Verb(
        lambda ds: ds.deep_clone(f"{ds.uri}-clone", ("dev", None)), branched, at="-clone"
    ),
}  # fmt: skip
