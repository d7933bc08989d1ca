"""Preview changes of branches and tags: what each would do, and the code that does it.

Layout of ``Consequence.to_json``: ``{level, text}``; ``level`` is "ok" (information), "warn"
(something gets lost) or "stop" (the engine refuses). Layout of code: ``{python, magic}``; the
magics apply to the current dataset.

Limits: ``MAX_NAMED`` names of each kind are written out, the others are counted.
Source: ``table.retention`` (what a clean-up keeps), ``BranchDeletion``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_nb.code_lines import Python, magic, offered
from lance_nb.errors import LanceError
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.refs.ref_list import (
    Place,
    Record,
    RefBook,
    fork_of,
    is_missing,
    pin_label,
    tag_place,
)
from lance_nb.explorer.source import Source
from lance_nb.explorer.version_refs import place_word
from lance_nb.value_classes import dataclass
from lance_nb.writing.branching import BranchDeletion

MAX_NAMED = 8
OK, WARN, STOP = "ok", "warn", "stop"
Code = dict[str, str]


@dataclass(frozen=True, slots=True)
class Consequence(JsonFields):
    """One consequence."""

    level: str
    text: str


def of_creating(book: RefBook, kind: str, place: Place, num_rows: int) -> list[Consequence]:
    """List the consequences of a new tag or branch at a version."""
    shown = text.ref_label(*place)
    consequence = Consequence(OK, f"{shown} is kept from clean-up as long as the {kind} exists.")
    if kind == "tag":
        other_tags = book.tags_at(place)
        return [
            consequence,
            *(
                [Consequence(OK, f"It already has the tag {_names(other_tags)}.")]
                if other_tags
                else []
            ),
        ]
    rows = text.plural(num_rows, "row")
    return [Consequence(OK, f"Starts at {shown} with its {rows}; no data is copied."), consequence]


def of_moving(
    book: RefBook, tag: str, place: Place, latest: int | None, *, is_missing: bool = False
) -> list[Consequence]:
    """List the consequences of moving a tag; ``latest`` is that of the branch it leaves.

    ``is_missing``: the version that it leaves does not exist any more.
    """
    before = tag_place(book.tags[tag])
    if before == place:
        return [Consequence(STOP, f"It is already at {text.ref_label(*place)}.")]
    explanation = f"{text.ref_label(*place)} is kept from clean-up as long as the tag exists."
    return [
        Consequence(OK, f"From {text.ref_label(*before)} to {text.ref_label(*place)}."),
        Consequence(OK, explanation),
        *of_leaving(book, tag, latest, is_missing=is_missing),
    ]


def of_leaving(
    book: RefBook, tag: str, latest: int | None, *, is_missing: bool = False
) -> list[Consequence]:
    """List the consequences for the version that a tag leaves; see ``of_moving``."""
    place = tag_place(book.tags[tag])
    if is_missing:
        shown = text.ref_label(*place)
        return [Consequence(OK, f"{shown} does not exist any more, so nothing loses protection.")]
    consequences = [
        _protection(
            book, place, [tag_name for tag_name in book.tags_at(place) if tag_name != tag], latest
        )
    ]
    named = f"merged-{(place[0] or 'main').replace('/', '-')}-{place[1]}"  # by older releases
    if pin_label(tag, book.tags[tag]) is not None or tag.startswith(named):
        consequences.append(
            Consequence(
                WARN,
                "A merge created this tag: another branch reads files of "
                f"{text.ref_label(*place)} in place. pylance does not know this, and may delete "
                "the files without the tag. It goes by itself once no version reads them.",
            )
        )
    return consequences


def undo_of_tag(tag: Record, act: str, *, is_missing: bool) -> Consequence:
    """Say whether a tag can be put back; ``act`` is how: "is created again at", "moves back to"."""
    shown = text.ref_label(*tag_place(tag))
    if is_missing:
        return Consequence(WARN, f"Cannot be undone, because {shown} does not exist any more.")
    return Consequence(OK, f"Can be undone: the tag {act} {shown}.")


def of_tag(
    dataset: Source, book: RefBook, tag: str, place: Place | None = None
) -> list[Consequence]:
    """List the consequences of moving a tag to a version or, without one, of deleting it."""
    before = tag_place(book.tags[tag])
    latest, missing = newest_version(dataset, before[0]), is_missing(dataset, before)
    if place is None:
        effects = of_leaving(book, tag, latest, is_missing=missing)
        return [*effects, undo_of_tag(book.tags[tag], "is created again at", is_missing=missing)]
    effects = of_moving(book, tag, place, latest, is_missing=missing)
    return [*effects, undo_of_tag(book.tags[tag], "moves back to", is_missing=missing)]


def newest_version(dataset: Source, branch: str | None) -> int | None:
    """Return the newest version of a branch, None where it cannot be read."""
    try:
        return dataset.checkout_version((branch, None)).version
    except LanceError:
        return None


def _protection(
    book: RefBook, place: Place, tags: Sequence[str], latest: int | None, without: str = ""
) -> Consequence:
    """Return whether a version is still protected from clean-up."""
    shown = text.ref_label(*place)
    forks = [fork for fork in book.forks_at(place) if fork != without]
    if tags or forks:
        by = [f"tag {_names(tags)}"] if tags else []
        by += [f"branch {_names(forks)}, which started there"] if forks else []
        return Consequence(OK, f"{shown} stays protected by {' and '.join(by)}.")
    if latest is not None and place[1] >= latest:
        return Consequence(
            OK, f"{shown} is the newest version: it stays until there is a newer one."
        )
    return Consequence(WARN, f"{shown} loses its protection: the next clean-up may delete it.")


def of_deleting_branch(
    book: RefBook, deletion: BranchDeletion, latest_of_parent: int | None, *, stands_here: bool
) -> list[Consequence]:
    """List what is deleted with a branch, and what prevents it."""
    users, name = deletion.users, text.name(deletion.name)
    consequences = [Consequence(STOP, refusal) for refusal in _refusals(deletion)]
    if users.pins:
        phrase = (
            "which kept its files for merges, go"
            if len(users.pins) > 1
            else ("which kept its files for a merge, goes")
        )
        noun = "Tags" if len(users.pins) > 1 else "Tag"
        consequences.append(Consequence(OK, f"{noun} {_names(users.pins)}, {phrase} with it."))
    own = [version for version in deletion.versions if version > (deletion.fork.version or 0)]
    size = f"{text.plural(deletion.num_files, 'file')}, {text.size(deletion.size_bytes)}"
    level = OK if users else WARN
    versions = text.plural(len(deletion.versions), "version")
    consequences.append(Consequence(level, f"Frees {size}: all {versions}."))
    if own:
        phrase = f"{text.plural(len(own), 'version')} of {name} since its fork"
        consequences.append(Consequence(WARN, f"{phrase} cannot be restored."))
    place = fork_of(book.branches[deletion.name])
    tags = book.tags_at(place)
    consequences.append(_protection(book, place, tags, latest_of_parent, without=deletion.name))
    if stands_here:
        fork_label = text.ref_label(*place)
        consequences.append(
            Consequence(OK, f"This view shows the branch and will switch to {fork_label}.")
        )
    return consequences


def _refusals(deletion: BranchDeletion) -> Iterable[str]:
    users = deletion.users
    if users.children:
        names = _names([name for name, _ in users.children])
        yield f"Refused: other branches started from it ({names}). Delete them first."
    if users.tags:
        names = _names([name for name, _ in users.tags])
        yield f"Refused: tags point to its versions ({names}). Delete or move them first."
    if users.readers:
        places = [text.ref_label(*reader) for reader in users.readers]
        yield f"Refused: versions that merged it refer to its files ({_names(places)})."


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(text.name(name) for name in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def list_code(dataset: Source, kind: str) -> Code:
    """List the branches or tags."""
    noun = "branches" if kind == "branch" else "tags"
    return offered(opened(dataset).attribute(f"{noun}.list").call(), magic(kind, "list"))


def change_code(dataset: Source, kind: str, action: str, name: str, place: Place | None) -> Code:
    """Create, move or delete a ref; the place counts for the first two."""
    noun = "branches" if kind == "branch" else "tags"
    method = {"create": "create", "move": "update", "delete": "delete"}[action]
    verb = f"{noun}.{method}"
    if verb == "branches.create":
        verb = "create_branch"
    places = () if place is None or action == "delete" else (place,)
    arguments = [version if branch is None else (branch, version) for branch, version in places]
    words = [place_word(*place) for place in places]
    python = opened(dataset).attribute(verb).call(name, *arguments)
    return offered(python, magic(kind, action, name, *words))


def opened(dataset: Source) -> Python:
    """Return the expression that opens a dataset."""
    return Python("lance_nb.dataset").call(dataset.uri)
