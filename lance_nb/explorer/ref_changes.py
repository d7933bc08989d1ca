"""What the view of branches and tags changes; the requests are listed in ``widgets.branches``.

Nothing is written while the lock is shut, and nothing that is not as the person has seen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.errors import InvalidInputError, LanceError, RefConflictError
from lance_nb.explorer.messages import Answer, Job, Progress, words
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.models.ref_list import (
    NOTE,
    NOTE_CHARS,
    Place,
    branch_heads,
    fork_of,
    identity_of,
    place_json,
    ref_book,
    whole_note,
)
from lance_nb.explorer.models.source import writable_dataset
from lance_nb.explorer.ref_answers import MAX_NAME, kind_of, known
from lance_nb.explorer.session import place_of
from lance_nb.explorer.view_answers import ViewAnswers


class RefChanges(ViewAnswers):
    """Creates, moves, describes and deletes."""

    requests: ClassVar[Mapping[str, str]] = {
        "refs.create": "on_create",
        "refs.move": "on_move",
        "refs.note": "on_note",
        "refs.delete": "on_delete",
    }

    def on_create(self, args: Mapping[str, Any]) -> Answer:
        """Create a tag or a branch."""
        self.session.check_unlocked()
        kind, name, place = kind_of(args), words(args, "name", MAX_NAME), place_of(args)
        note = words(args, "note", NOTE_CHARS).strip()
        dataset = writable_dataset(self.session.dataset)
        if kind == "tag":
            dataset.tags.create(name, place)
        else:
            dataset.create_branch(name, place)
        if note:
            owner = dataset.tags if kind == "tag" else dataset.branches
            owner.replace_metadata(name, {NOTE: note})
        there = (name, place[1]) if kind == "branch" else place
        shown = f"{kind.capitalize()} {text.name(name)} is made at {text.ref_label(*place)}."
        return self._done(shown, there)

    def on_move(self, args: Mapping[str, Any]) -> Answer:
        """Move a tag from where it was seen."""
        self.session.check_unlocked()
        name, place = words(args, "name", MAX_NAME), place_of(args)
        seen = _seen_place(args)
        tags = writable_dataset(self.session.dataset).tags
        tags.update(name, place, expected=seen)
        route = f"from {text.ref_label(*seen)} to {text.ref_label(*place)}"
        return self._done(f"Tag {text.name(name)} moved {route}.", place)

    def on_note(self, args: Mapping[str, Any]) -> Answer:
        """Write a note in the place of the one that was seen."""
        self.session.check_unlocked()
        kind, name = kind_of(args), words(args, "name", MAX_NAME)
        note, before = words(args, "note", NOTE_CHARS).strip(), words(args, "before", NOTE_CHARS)
        book = ref_book(self.session.dataset)
        records = book.tags if kind == "tag" else book.branches
        record = records[known(records, kind, name)]
        if whole_note(record) != before:
            raise RefConflictError(
                f"somebody has written another note on {kind} {name!r} meanwhile"
            )
        metadata = {**record.get("metadata", {}), NOTE: note}
        dataset = writable_dataset(self.session.dataset)
        owner = dataset.tags if kind == "tag" else dataset.branches
        owner.replace_metadata(name, {k: v for k, v in metadata.items() if v or k != NOTE})
        return self._done(f"Note on {kind} {text.name(name)} is written.", None)

    def on_delete(self, args: Mapping[str, Any]) -> Job:
        """Delete a tag or a branch, if it still is what was seen."""
        self.session.check_unlocked()
        kind, name = kind_of(args), words(args, "name", MAX_NAME)
        tagged = _seen_place(args) if kind == "tag" else None
        seen = "" if tagged else words(args, "seen", MAX_NAME)
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            if kind == "tag":
                dataset.tags.delete(name, expected=tagged)
                return self._done(f"Tag {text.name(name)} is deleted.", None)
            fork = self._check_branch(name, seen)
            dataset.branches.delete(name, progress=progress)
            there = None
            if dataset.branch == name:
                there = self._leave(fork)
            self.session.forget(name)
            return self._done(f"Branch {text.name(name)} is deleted.", there)

        return Job(work)

    def _leave(self, fork: Place) -> Place:
        """Go where the branch started from, or to main where that is gone."""
        try:
            self.session.stand(fork)
        except LanceError:
            self.session.travel(refs.MAIN)
        return self.session.dataset.branch, self.session.dataset.version

    def _check_branch(self, name: str, seen: str) -> Place:
        """Return where a branch started from. Raises RefConflictError if it has changed."""
        book = ref_book(self.session.dataset)
        record = book.branches[known(book.branches, "branch", name)]
        (head,) = branch_heads(self.session.dataset, book, [name])
        if identity_of(record, head) != seen:
            raise RefConflictError(
                f"branch {name!r} has changed meanwhile: its newest version is "
                f"{head.get('version')}; nothing was deleted, look at it again"
            )
        return fork_of(record)

    def _done(self, words: str, there: Place | None) -> Answer:
        return Answer(
            {
                "words": words,
                "place": None if there is None else place_json(there),
                "parts": self.session.parts_json(("timeline", "card")),
            }
        )


def _seen_place(args: Mapping[str, Any]) -> Place:
    """Take where a tag was seen from the arguments of a request."""
    seen = args.get("seen")
    if not isinstance(seen, dict):
        raise InvalidInputError("seen must be {branch, version}")
    return place_of(seen)
