"""Branches and tags: lists, details, and changes, with their consequences shown first.

The ES module is ``branches.js``. ``kind`` is "branch" or "tag", ``at`` a ref as people write it.
Requests:

============= ================================================ =================================
request       args                                             result
============= ================================================ =================================
refs.list     kind, text, sort, descending, first, count,      models.ref_list.RefPage, ``code``
              fresh (read the records again)
refs.heads    names (null: main)                               heads: models.ref_list
refs.show     kind, name                                       models.ref_list
refs.check    kind, action (create, move), name, at            reason (why the name is refused),
                                                               problem (of ``at``), place,
                                                               consequences, code
refs.explain  kind, name (long work)                           consequences of deleting, refused,
                                                               seen, typed (the word to type),
                                                               button, code
refs.bytes    name (long work)                                 words: what deleting a tag frees
refs.create   kind, name, place, note                          words, place, parts
refs.move     name, place, seen                                the same
refs.note     kind, name, note, before                         the same
refs.delete   kind, name, seen, typed (long work)              the same
============= ================================================ =================================

``parts`` are for ``ctx.refresh``; ``seen`` is the state that was shown: a tag or branch that has
changed since is left alone, and the answer is an error. ``place`` is null where there is no version
to go to. Nothing is written while the lock is closed.

Merges, cherry-picks and reverts: ``explorer/refs/merging.py``.

Limits: the static rendering lists ``MAX_RENDERED`` branches and as many tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from lance_nb.errors import (
    InvalidInputError,
    LanceError,
    RefConflictError,
    RefNotFoundError,
)
from lance_nb.explorer import text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.undo import Undo, Undone
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, integer, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.refs import ref_preview as consequences
from lance_nb.explorer.refs.merging import MergeHandlers, logged
from lance_nb.explorer.refs.picture import VIEW
from lance_nb.explorer.refs.ref_change import (
    BranchChange,
    NoteChange,
    TagChange,
    undo_of_branch_deletion,
)
from lance_nb.explorer.refs.ref_list import (
    MAX_HEADS,
    MAX_LINES,
    NOTE_CHARS,
    Place,
    RefBook,
    RefQuery,
    branch_heads,
    fork_of,
    identity_of,
    is_missing,
    place_json,
    ref_book,
    ref_detail,
    ref_page,
    tag_place,
)
from lance_nb.explorer.refs.ref_preview import change_code, list_code
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers, Session, place_of
from lance_nb.explorer.source import Source, writable_dataset
from lance_nb.explorer.stage.act_review import ActReview, review_of_branch
from lance_nb.explorer.static_rendering import StaticRendering, render_table
from lance_nb.explorer.version_refs import MAIN
from lance_nb.explorer.widget import LanceWidget
from lance_nb.format.refs import check_branch_name, check_tag_name

MAX_RENDERED = 12
KINDS = ("branch", "tag")
MAX_NAME = 1000
MANY = 500  # records to read before it is long work


def render_refs(dataset: Source) -> StaticRendering:
    """Render the branches and tags of a dataset, from their records alone."""
    branches, tags = dataset.branches.list(), dataset.tags.list()
    lines = [("branch", MAIN, "")]
    for name, about in sorted(branches.items())[:MAX_RENDERED]:
        fork = text.ref_label(about["parent_branch"], about["parent_version"])
        mark = ", unfinished" if about.get("is_unfinished") else ""
        lines.append(("branch", text.name(name), f"from {fork}{mark}"))
    for name, about in sorted(tags.items())[:MAX_RENDERED]:
        lines.append(("tag", text.name(name), text.ref_label(about["branch"], about["version"])))
    words_shown = f"{text.count(len(branches))} besides {MAIN}, {text.plural(len(tags), 'tag')}"
    left = sum(max(0, len(records) - MAX_RENDERED) for records in (branches, tags))
    return render_table(
        f"Branches and tags of {text.name(dataset.name)}",
        (words_shown,),
        (("", "name", "where"), lines),
        note=f"{text.count(left)} more" if left else "",
    )


class RefHandlers(RequestHandlers):
    """Handlers about tags and branches; keep their records between requests."""

    prefix: ClassVar[str] = "refs"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._book: RefBook | None = None

    def _records(self, *, fresh: bool = False) -> RefBook:
        if self._book is None or fresh:
            self._book = ref_book(self.session.dataset)
        return self._book

    def _beside(self, work: Callable[[], Answer]) -> Answer | Job:
        """Do work that reads the records; as a job if there are many."""
        dataset = self.session.dataset
        if len(dataset.tags.names()) + len(dataset.branches.names()) <= MANY:
            return work()
        return Job(lambda _progress: work())

    # --- looking ----------------------------------------------------------------------------------

    def on_list(self, args: Mapping[str, Any]) -> Answer | Job:
        """Return a window of a list."""
        kind = kind_of(args)
        query = RefQuery(
            kind,
            words(args, "text", refs.MAX_CHARS),
            words(args, "sort", 20),
            descending=args.get("descending") is True,
            first=integer(args, "first", low=0, high=MAX_COUNT),
            count=integer(args, "count", low=1, high=MAX_LINES),
        )
        fresh = self._book is None or args.get("fresh") is True

        def work() -> Answer:
            page = ref_page(self._records(fresh=fresh), query)
            return Answer({**page.to_json(), "code": list_code(self.session.dataset, kind)})

        return self._beside(work) if fresh else work()

    def on_heads(self, args: Mapping[str, Any]) -> Job:
        """Describe the newest versions of some branches."""
        names = args.get("names")
        if not isinstance(names, list) or len(names) > MAX_HEADS:
            raise InvalidInputError(f"names must be a list of up to {MAX_HEADS}")
        checked = [_name_or_main({"name": name}) for name in names]
        dataset, book = self.session.dataset, self._records()
        return Job(lambda _progress: Answer({"heads": branch_heads(dataset, book, checked)}))

    def on_show(self, args: Mapping[str, Any]) -> Answer | Job:
        """Describe one ref, as it is now."""
        kind, name = kind_of(args), _name_or_main(args)

        def work() -> Answer:
            book = self._records(fresh=True)
            return Answer(ref_detail(self.session.dataset, book, kind, name).to_json())

        return self._beside(work)

    def on_check(self, args: Mapping[str, Any]) -> Answer:
        """Check a form while it is filled in, and list the consequences."""
        kind, action = kind_of(args), words(args, "action", 20)
        name, place_text = words(args, "name", MAX_NAME), words(args, "at", refs.MAX_CHARS)
        dataset, book = self.session.dataset, self._records()
        reason = name_problem(book, kind, name) if action == "create" else ""
        state: dict[str, Any] = {"reason": reason, "problem": "", "place": None, "code": None}
        try:
            source = dataset.checkout_version(place_text)
        except LanceError as error:
            return Answer({**state, "problem": text.line(str(error), 300), "consequences": []})
        place = (source.branch, source.version)
        if action == "create":
            effects = consequences.of_creating(book, kind, place, source.count_rows())
        else:
            known_name(book.tags, "tag", name)
            effects = consequences.of_moving(
                book,
                name,
                place,
                consequences.newest_version(dataset, tag_place(book.tags[name])[0]),
                is_missing=is_missing(dataset, tag_place(book.tags[name])),
            )
        state["place"] = place_json(place)
        if name and not reason:
            state["code"] = change_code(dataset, kind, action, name=name, place=place)
        return Answer({**state, "consequences": [effect.to_json() for effect in effects]})

    def on_explain(self, args: Mapping[str, Any]) -> Job:
        """List the consequences of deleting a ref."""
        kind, name = kind_of(args), words(args, "name", MAX_NAME)
        dataset = self.session.dataset

        def work(progress: Progress) -> Answer:
            book = self._records(fresh=True)
            if kind == "tag":
                place = tag_place(book.tags[known_name(book.tags, kind, name)])
                effects = consequences.of_tag(dataset, book, name)
                review = ActReview(f"Delete tag {text.name(name)}", tuple(effects))
                seen: Any = place_json(place)
            else:
                known_name(book.branches, kind, name)
                deletion = writable_dataset(dataset).branches.explain_delete(
                    name, progress=progress
                )
                (head,) = branch_heads(dataset, book, [name])
                parent = consequences.newest_version(dataset, fork_of(book.branches[name])[0])
                is_current = dataset.branch == name
                effects = consequences.of_deleting_branch(
                    book, deletion, parent, stands_here=is_current
                )
                review = review_of_branch(deletion, effects)
                seen = identity_of(book.branches[name], head)
            return Answer(
                {
                    "consequences": [consequence.to_json() for consequence in review.consequences],
                    "refused": any(
                        consequence.level == consequences.STOP
                        for consequence in review.consequences
                    ),
                    "seen": seen,
                    "typed": review.typed,
                    "button": review.button,
                    "code": change_code(dataset, kind, "delete", name=name, place=None),
                }
            )

        return Job(work)

    def on_bytes(self, args: Mapping[str, Any]) -> Job:
        """Count the bytes that a clean-up frees once a tag is deleted."""
        name = words(args, "name", MAX_NAME)
        branch, version = tag_place(
            self._records().tags[known_name(self._records().tags, "tag", name)]
        )
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            space = dataset.space(progress=progress)
            freed = space.freed_if(drop_tags=[name], versions=[version], branch=branch)
            size = f"{text.size(freed.size_bytes)} in {text.plural(freed.num_files, 'file')}"
            return Answer(
                {"words": f"Cleaning up {text.ref_label(branch, version)} then frees {size}."}
            )

        return Job(work)


def kind_of(args: Mapping[str, Any]) -> str:
    """Take the kind of a ref from the arguments of a request."""
    kind = words(args, "kind", 20)
    if kind not in KINDS:
        raise InvalidInputError(f"kind must be one of {', '.join(KINDS)}")
    return kind


def name_problem(book: RefBook, kind: str, name: str) -> str:
    """Say why a new ref cannot have a name; empty when it can, and while there is none yet."""
    if not name:
        return ""
    records = book.tags if kind == "tag" else book.branches
    if name in records:
        return f"A {kind} of this name already exists."
    try:
        (check_tag_name if kind == "tag" else check_branch_name)(name)
    except LanceError as error:
        return text.line(str(error), 300)
    return ""


def _name_or_main(args: Mapping[str, Any]) -> str | None:
    return None if args.get("name") is None else words(args, "name", MAX_NAME)


def known_name(records: Mapping[str, Any], kind: str, name: str) -> str:
    """Return the name of a ref that is there. Raises RefNotFoundError."""
    if name not in records:
        raise RefNotFoundError(kind, name, tuple(records))
    return name


class RefChangeHandlers(RequestHandlers):
    """Handlers that create, move, describe and delete tags and branches."""

    prefix: ClassVar[str] = "refs"

    def on_create(self, args: Mapping[str, Any]) -> Answer:
        """Create a tag or a branch."""
        self.session.check_unlocked()
        kind, name, place = kind_of(args), words(args, "name", MAX_NAME), place_of(args)
        note = words(args, "note", NOTE_CHARS).strip()
        change: TagChange | BranchChange = TagChange(name, None, place)
        if kind == "branch":
            change = BranchChange(name, place, creates=True)
        done = self._run(change)
        if note:
            NoteChange(kind, name, "", note).run(writable_dataset(self.session.dataset), _ignored)
        return self._done(done.words, done.place)

    def on_move(self, args: Mapping[str, Any]) -> Answer:
        """Move a tag from where it was seen."""
        self.session.check_unlocked()
        name, place = words(args, "name", MAX_NAME), place_of(args)
        done = self._run(TagChange(name, _seen_place(args), place))
        return self._done(done.words, place)

    def on_note(self, args: Mapping[str, Any]) -> Answer:
        """Write a note in the place of the one that was seen."""
        self.session.check_unlocked()
        kind, name = kind_of(args), words(args, "name", MAX_NAME)
        note, before = words(args, "note", NOTE_CHARS).strip(), words(args, "before", NOTE_CHARS)
        return self._done(self._run(NoteChange(kind, name, before, note)).words, None)

    def on_delete(self, args: Mapping[str, Any]) -> Job:
        """Delete a tag or a branch, if it still is what was seen."""
        self.session.check_unlocked()
        kind, name = kind_of(args), words(args, "name", MAX_NAME)
        tagged = _seen_place(args) if kind == "tag" else None
        seen = "" if tagged else words(args, "seen", MAX_NAME)
        typed = words({"typed": args.get("typed") or ""}, "typed", MAX_NAME).strip()
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            if kind == "tag":
                return self._done(self._run(TagChange(name, tagged, None)).words, None)
            fork = self._check_branch(name, seen)
            deletion = dataset.branches.explain_delete(name, users=False)
            word = review_of_branch(deletion, ()).typed
            if word and typed != word:
                raise InvalidInputError(f"this cannot be undone: type {word!r} to confirm it")
            change = BranchChange(name, fork, creates=False)
            done = self._run(change, progress, undo=undo_of_branch_deletion(deletion, fork))
            target = None
            if dataset.branch == name:
                target = self._leave(fork)
            self.session.forget(name)
            return self._done(done.words, target)

        return Job(work)

    def _run(
        self,
        change: TagChange | BranchChange | NoteChange,
        progress: Progress | None = None,
        *,
        undo: Undo | None = None,
    ) -> Undone:
        """Make a change, and record it in the log of operations."""
        dataset = writable_dataset(self.session.dataset)
        done = change.run(dataset, progress or _ignored)
        operations_log_of(dataset.uri).record(change.title, done.code, undo or done.undo)
        return done

    def _leave(self, fork: Place) -> Place:
        """Go to the version that the branch started from, or to main if that fails."""
        try:
            self.session.stand(fork)
        except LanceError:
            self.session.travel(refs.MAIN)
        return self.session.dataset.branch, self.session.dataset.version

    def _check_branch(self, name: str, seen: str) -> Place:
        """Return where a branch started from. Raises RefConflictError if it has changed."""
        book = ref_book(self.session.dataset)
        record = book.branches[known_name(book.branches, "branch", name)]
        (head,) = branch_heads(self.session.dataset, book, [name])
        if identity_of(record, head) != seen:
            raise RefConflictError(
                f"branch {name!r} has changed: its newest version is now {head.get('version')}; "
                "nothing was deleted. Reload it and try again"
            )
        return fork_of(record)

    def _done(self, words: str, target: Place | None) -> Answer:
        return Answer(
            {
                "words": words,
                "place": None if target is None else place_json(target),
                "parts": self.session.parts_json(("timeline", "card")),
            }
        )


def _ignored(_done: int, _total: int) -> None:
    """Report no progress: a tag or note is one write."""


def _seen_place(args: Mapping[str, Any]) -> Place:
    """Take where a tag was seen from the arguments of a request."""
    seen = args.get("seen")
    if not isinstance(seen, dict):
        raise InvalidInputError("seen must be {branch, version}")
    return place_of(seen)


class RefsManager(LanceWidget):
    """The branches and tags of a dataset: look, create, move, delete, compare, merge."""

    entry: ClassVar[str] = "refs/branches.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline")
    default_height: ClassVar[int] = 440
    view: ClassVar[View] = VIEW

    def picture(self) -> StaticRendering:
        """Return the branches and tags as text and static HTML."""
        return super().picture() if self.error is not None else render_refs(self.dataset)

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about tags and branches."""
        handlers = (RefHandlers, RefChangeHandlers, MergeHandlers)
        handlers_by_kind = {
            kind: do
            for handlers_type in handlers
            for kind, do in session.keep(handlers_type).handlers().items()
        }
        return handlers_by_kind | {"refs.merge": logged(session, handlers_by_kind["refs.merge"])}
