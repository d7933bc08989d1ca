"""What the view of branches and tags asks; the requests are listed in ``widgets.branches``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from lance_nb.errors import InvalidInputError, LanceError, RefNotFoundError
from lance_nb.explorer.messages import Answer, Job, Progress, integer, words
from lance_nb.explorer.models import ref_changes as consequences
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.models.ref_changes import change_code, list_code
from lance_nb.explorer.models.ref_list import (
    MAX_HEADS,
    MAX_LINES,
    RefBook,
    RefQuery,
    branch_heads,
    fork_of,
    identity_of,
    place_json,
    ref_book,
    ref_detail,
    ref_page,
    tag_place,
)
from lance_nb.explorer.models.source import Source, writable_dataset
from lance_nb.explorer.session import MAX_COUNT, Session
from lance_nb.explorer.view_answers import ViewAnswers
from lance_nb.format.refs import check_branch_name, check_tag_name

KINDS = ("branch", "tag")
MAX_NAME = 1000
MANY = 500  # records to read before it is long work


class RefAnswers(ViewAnswers):
    """The answers about tags and branches; keeps their records between requests."""

    requests: ClassVar[Mapping[str, str]] = {
        "refs.list": "on_list",
        "refs.heads": "on_heads",
        "refs.show": "on_show",
        "refs.check": "on_check",
        "refs.explain": "on_explain",
        "refs.bytes": "on_bytes",
    }

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._book: RefBook | None = None

    def _records(self, *, fresh: bool = False) -> RefBook:
        if self._book is None or fresh:
            self._book = ref_book(self.session.dataset)
        return self._book

    def _beside(self, work: Callable[[], Answer]) -> Answer | Job:
        """Do work that reads the records; beside the messages when there are many."""
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
            args.get("descending") is True,
            integer(args, "first", low=0, high=MAX_COUNT),
            integer(args, "count", low=1, high=MAX_LINES),
        )
        fresh = self._book is None or args.get("fresh") is True

        def work() -> Answer:
            page = ref_page(self._records(fresh=fresh), query)
            return Answer({**page.to_json(), "code": list_code(self.session.dataset, kind)})

        return self._beside(work) if fresh else work()

    def on_heads(self, args: Mapping[str, Any]) -> Answer:
        """Describe the newest versions of some branches."""
        names = args.get("names")
        if not isinstance(names, list) or len(names) > MAX_HEADS:
            raise InvalidInputError(f"names must be a list of up to {MAX_HEADS}")
        checked = [_name_or_main({"name": one}) for one in names]
        return Answer({"heads": branch_heads(self.session.dataset, self._records(), checked)})

    def on_show(self, args: Mapping[str, Any]) -> Answer | Job:
        """Describe one ref, as it is now."""
        kind, name = kind_of(args), _name_or_main(args)

        def work() -> Answer:
            book = self._records(fresh=True)
            return Answer(ref_detail(self.session.dataset, book, kind, name).to_json())

        return self._beside(work)

    def on_check(self, args: Mapping[str, Any]) -> Answer:
        """Say what is wrong with a form while it is filled in, or what would come of it."""
        kind, action = kind_of(args), words(args, "action", 20)
        name, at = words(args, "name", MAX_NAME), words(args, "at", refs.MAX_CHARS)
        dataset, book = self.session.dataset, self._records()
        reason = name_problem(book, kind, name) if action == "create" else ""
        found: dict[str, Any] = {"reason": reason, "problem": "", "place": None, "code": None}
        try:
            source = refs.resolve(dataset, at)
        except LanceError as error:
            return Answer({**found, "problem": text.line(str(error), 300), "consequences": []})
        place = (source.branch, source.version)
        if action == "create":
            told = consequences.of_creating(book, kind, place, source.count_rows())
        else:
            told = consequences.of_moving(
                book, known(book.tags, "tag", name), place, self._latest(book, name)
            )
        found["place"] = place_json(place)
        if name and not reason:
            found["code"] = change_code(dataset, kind, action, name, place)
        return Answer({**found, "consequences": [one.to_json() for one in told]})

    def on_explain(self, args: Mapping[str, Any]) -> Job:
        """Say what comes of deleting a ref."""
        kind, name = kind_of(args), words(args, "name", MAX_NAME)
        dataset = self.session.dataset

        def work(progress: Progress) -> Answer:
            book = self._records(fresh=True)
            if kind == "tag":
                place = tag_place(book.tags[known(book.tags, kind, name)])
                told = consequences.of_leaving(book, name, self._latest(book, name))
                seen: Any = place_json(place)
            else:
                known(book.branches, kind, name)
                deletion = writable_dataset(dataset).branches.explain_delete(
                    name, progress=progress
                )
                (head,) = branch_heads(dataset, book, [name])
                parent = _latest(dataset, fork_of(book.branches[name])[0])
                here = dataset.branch == name
                told = consequences.of_deleting_branch(book, deletion, parent, stands_here=here)
                seen = identity_of(book.branches[name], head)
            return Answer(
                {
                    "consequences": [one.to_json() for one in told],
                    "refused": any(one.level == consequences.STOP for one in told),
                    "seen": seen,
                    "code": change_code(dataset, kind, "delete", name, None),
                }
            )

        return Job(work)

    def on_bytes(self, args: Mapping[str, Any]) -> Job:
        """Count what a clean-up frees once a tag is gone."""
        name = words(args, "name", MAX_NAME)
        branch, version = tag_place(self._records().tags[known(self._records().tags, "tag", name)])
        dataset = writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            space = dataset.space(progress=progress)
            freed = space.freed_if(drop_tags=[name], versions=[version], branch=branch)
            size = f"{text.size(freed.size_bytes)} in {text.plural(freed.num_files, 'file')}"
            return Answer(
                {"words": f"Cleaning up {text.ref_label(branch, version)} then frees {size}."}
            )

        return Job(work)

    def _latest(self, book: RefBook, tag: str) -> int | None:
        """Return the newest version of the branch that a tag is on."""
        return _latest(self.session.dataset, tag_place(book.tags[tag])[0])


def kind_of(args: Mapping[str, Any]) -> str:
    """Take the kind of a ref from the arguments of a request."""
    kind = words(args, "kind", 20)
    if kind not in KINDS:
        raise InvalidInputError(f"kind is one of {', '.join(KINDS)}")
    return kind


def name_problem(book: RefBook, kind: str, name: str) -> str:
    """Say why a new ref cannot have a name; empty when it can, and while there is none yet."""
    if not name:
        return ""
    records = book.tags if kind == "tag" else book.branches
    if name in records:
        return f"There is a {kind} of this name already."
    try:
        (check_tag_name if kind == "tag" else check_branch_name)(name)
    except LanceError as error:
        return text.line(str(error), 300)
    return ""


def _name_or_main(args: Mapping[str, Any]) -> str | None:
    return None if args.get("name") is None else words(args, "name", MAX_NAME)


def known(records: Mapping[str, Any], kind: str, name: str) -> str:
    """Return the name of a ref that is there. Raises RefNotFoundError."""
    if name not in records:
        raise RefNotFoundError(kind, name, tuple(records))
    return name


def _latest(dataset: Source, branch: str | None) -> int | None:
    try:
        return dataset.checkout_version((branch, None)).version
    except LanceError:
        return None
