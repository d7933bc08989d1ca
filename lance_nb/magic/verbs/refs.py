"""Verbs about branches and tags, and about going back."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_lines, answer_of_records
from lance_nb.magic.desk import Desk, label, place_of
from lance_nb.magic.verb import BRANCH, REF, TAG, Verb, argument


def branch(desk: Desk, said: Namespace) -> Answer:
    """List, create or delete branches."""
    dataset = desk.dataset
    if said.action == "list":
        found = dataset.branches.list()
        records = [
            {
                "branch": text.name(name),
                "from": _fork(about),
                "created": datetime.fromtimestamp(about["create_at"], UTC).astimezone(),
            }
            for name, about in found.items()
        ]
        lines = [
            f"{text.name(name)} is unfinished, it has no version: create it again from "
            f"{_fork(about)} to complete it, or {desk.prog} branch delete {text.name(name)}"
            for name, about in found.items()
            if about.get("is_unfinished")
        ]
        return answer_of_records(f"Branches of {text.name(dataset.name)}", records, lines=lines)
    name = _named(desk, said, "branch")
    if said.action == "create":
        made = dataset.create_branch(name, place_of(desk.at(said.ref)))
        return _moved(desk.hold(made), f"created branch {text.name(name)}")
    if said.action == "delete":
        if dataset.branch == name:
            desk.hold(dataset.checkout_version((None, None)))
        dataset.branches.delete(name, force=said.force)
        return answer_of_lines(f"Deleted branch {text.name(name)}", [], value=desk.dataset)
    raise InvalidInputError("a branch is not moved; delete it and create it anew")


def tag(desk: Desk, said: Namespace) -> Answer:
    """List, create, move or delete tags."""
    dataset = desk.dataset
    if said.action == "list":
        records = [
            {"tag": text.name(name), "version": f"{about['branch'] or 'main'}:{about['version']}",
             "updated": about["updated_at"]}
            for name, about in dataset.tags.list().items()
        ]  # fmt: skip
        return answer_of_records(f"Tags of {text.name(dataset.name)}", records)
    name = _named(desk, said, "tag")
    if said.action == "delete":
        dataset.tags.delete(name)
        return answer_of_lines(f"Deleted tag {text.name(name)}", ["The version stays."])
    there = desk.at(said.ref)
    change = dataset.tags.create if said.action == "create" else dataset.tags.update
    change(name, place_of(there))
    return answer_of_lines(f"Tag {text.name(name)} is {label(there)}", [], value=there)


def restore(desk: Desk, said: Namespace) -> Answer:
    """Make an older version the newest one again."""
    old = desk.at(said.ref)
    if old.branch != desk.dataset.branch:
        raise InvalidInputError(
            f"{label(old)} is on another branch; go there first, or cherry-pick its versions"
        )
    back = old.checkout_version(place_of(old))
    back.restore()
    return _moved(desk.hold(back), f"as version {old.version} was; nothing is lost")


def _named(desk: Desk, said: Namespace, noun: str) -> str:
    if said.name is None:
        raise InvalidInputError(
            f"{desk.prog} {noun} {said.action} needs the name of a {noun}; "
            f"usage: {desk.prog} {noun} {said.action} NAME"
        )
    return str(said.name)


def _fork(about: dict[str, object]) -> str:
    return f"{text.name(about['parent_branch'] or 'main')}:{about['parent_version']}"


def _moved(dataset: LanceDataset, what: str) -> Answer:
    return answer_of_lines(f"Now at {label(dataset)}", [what], value=dataset)


_FORCE = argument("--force", action="store_true", help="also when something depends on it")
_REF = argument("ref", nargs="?", means=REF, help="the version; the one in hand by default")

VERBS = (
    Verb(
        "branch",
        "list, create or delete branches",
        branch,
        (
            argument("action", nargs="?", choices=("list", "create", "delete"), default="list",
                     help="what to do"),
            argument("name", nargs="?", means=BRANCH, help="the branch"),
            _REF,
            _FORCE,
        ),
        "branch create try-out HEAD~1",
    ),
    Verb(
        "tag",
        "list, create, move or delete tags",
        tag,
        (
            argument("action", nargs="?", choices=("list", "create", "move", "delete"),
                     default="list", help="what to do"),
            argument("name", nargs="?", means=TAG, help="the tag"),
            _REF,
        ),
        "tag create reviewed",
    ),
    Verb(
        "restore",
        "make an older version the newest one again, as a new version",
        restore,
        (argument("ref", nargs="?", means=REF, help="the version to go back to"),),
        "restore HEAD~1",
    ),
)  # fmt: skip
