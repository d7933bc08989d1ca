"""Verbs of versions, branches, tags and clones."""

from __future__ import annotations

from tests.torture.verb import Verb, branch, branched, opened, rows


def _both_sides(place: str) -> None:
    branched(place)
    opened(place).insert(rows(700))


def _changed_both_sides(place: str) -> None:
    opened(place).create_branch("dev").update({"n": "n + 100"}, where="id = 5")
    opened(place).update({"n": "n + 200"}, where="id = 6")


def _same_row_both_sides(place: str) -> None:
    opened(place).create_branch("dev").update({"n": "n + 100"}, where="id = 5")
    opened(place).update({"n": "n + 200"}, where="id = 5")


def _tagged(place: str) -> None:
    opened(place).tags.create("kept", 1)


def _tagged_branch(place: str) -> None:
    branched(place)
    opened(place).tags.create("kept", ("dev", 2))


def _comment(place: str) -> None:
    opened(place).branches.review("dev").comment("Why these rows?", author="ada")


def _commented(place: str) -> None:
    branched(place)
    _comment(place)


def _delete_review(place: str) -> None:
    branches = opened(place).branches
    branches.delete_review("dev", branches.review("dev").identifier)


HISTORY_VERBS: dict[str, Verb] = {
    "restore": Verb(lambda place: opened(place).checkout_version(1).restore()),
    "restore on a branch": Verb(
        lambda place: opened(place).checkout_version(("dev", 2)).restore(), branched
    ),
    "staged restore": Verb(lambda place: opened(place).stage().restore(1).commit()),
    "create_branch": Verb(
        lambda place: opened(place).create_branch("dev", 2), between=("unfinished",)
    ),
    "create_branch from a branch": Verb(
        lambda place: branch(place).create_branch("dev2"), branched, between=("unfinished",)
    ),
    "create_branch with a slash": Verb(
        lambda place: opened(place).create_branch("team/dev", 2), between=("unfinished",)
    ),
    "branches.replace_metadata": Verb(
        lambda place: opened(place).branches.replace_metadata("dev", {"key": "new"}), branched
    ),
    "branches.delete": Verb(
        lambda place: opened(place).branches.delete("dev"), branched, between=("unfinished",)
    ),
    "branches.delete, forced": Verb(
        lambda place: opened(place).branches.delete("dev", force=True),
        _tagged_branch,
        between=("unfinished",),
    ),
    "branches.review, a comment": Verb(_comment, branched, commits=False),
    "branches.delete_review": Verb(_delete_review, _commented, commits=False),
    "branches.merge": Verb(
        lambda place: opened(place).branches.merge("dev"), _both_sides, between=("tag",)
    ),
    "branches.merge with copied files": Verb(
        lambda place: opened(place).branches.merge("dev", copy=True), _both_sides
    ),
    "branches.merge, fast": Verb(
        lambda place: opened(place).branches.merge("dev"), branched, between=("tag",)
    ),
    "branches.merge of changed rows": Verb(
        lambda place: opened(place).branches.merge("dev", key="id"),
        _changed_both_sides,
        between=("tag",),
    ),
    "branches.merge of a conflict": Verb(
        lambda place: opened(place).branches.merge("dev", key="id", on_conflict="theirs"),
        _same_row_both_sides,
        between=("tag",),
    ),
    "branches.merge of every commit": Verb(
        lambda place: opened(place).branches.merge("dev", squash=False),
        _both_sides,
        between=("tag",),
    ),
    "branches.merge into a branch": Verb(
        lambda place: branch(place).branches.merge("main"), _both_sides, between=("tag", "branch")
    ),
    "branches.plan_merge": Verb(
        lambda place: opened(place).branches.plan_merge("dev").commit(),
        _both_sides,
        between=("tag",),
    ),
    "cherry_pick": Verb(
        lambda place: opened(place).cherry_pick(("dev", 3)), _both_sides, between=("tag",)
    ),
    "cherry_pick with copied files": Verb(
        lambda place: opened(place).cherry_pick(("dev", 3), copy=True), _both_sides
    ),
    "revert": Verb(lambda place: opened(place).revert(2)),
    "revert of a delete": Verb(lambda place: opened(place).revert(3)),
    "tags.create": Verb(lambda place: opened(place).tags.create("kept", 2)),
    "tags.create on a branch": Verb(
        lambda place: opened(place).tags.create("kept", ("dev", None)), branched
    ),
    "tags.update": Verb(lambda place: opened(place).tags.update("kept", 2), _tagged),
    "tags.update to a branch": Verb(
        lambda place: opened(place).tags.update("kept", ("dev", 3)), _tagged_branch
    ),
    "tags.replace_metadata": Verb(
        lambda place: opened(place).tags.replace_metadata("kept", {"k": "v"}), _tagged
    ),
    "tags.delete": Verb(lambda place: opened(place).tags.delete("kept"), _tagged),
    "shallow_clone": Verb(
        lambda place: opened(place).shallow_clone(f"{place}-clone", 2), at="-clone"
    ),
    "shallow_clone of a branch": Verb(
        lambda place: opened(place).shallow_clone(f"{place}-clone", ("dev", None)),
        branched,
        at="-clone",
    ),
    "deep_clone": Verb(lambda place: opened(place).deep_clone(f"{place}-clone", 2), at="-clone"),
    "deep_clone of a branch": Verb(
        lambda place: opened(place).deep_clone(f"{place}-clone", ("dev", None)),
        branched,
        at="-clone",
    ),
}
