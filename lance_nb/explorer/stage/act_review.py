"""Review an act that takes something away: what is lost, what refers to it, how to approve it.

Layout of ``ActReview.to_json``: ``{button, consequences: [{level, text}], typed, final, empty,
key}``. ``button`` is named after the act ("Remove 20 versions"). ``typed`` is the word that a
person types to approve the act, empty when none is needed; ``final``: nothing brings back what is
lost; ``empty``: there is nothing to do; ``key`` identifies what was shown.

A word is typed for an act that is final and removes ``TYPED_VERSIONS`` versions or ``TYPED_BYTES``
bytes, or more.

Limits: rows are counted in the files of ``MAX_READ`` versions with ``MAX_FRAGMENTS`` fragments in
all; beyond that the count is "at least". Clones outside of the dataset are not known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lance_nb.errors import LanceError, NotFoundError
from lance_nb.explorer import text
from lance_nb.explorer.history.versions import runs_of
from lance_nb.explorer.refs.ref_preview import OK, WARN, Consequence
from lance_nb.shown_text import visible
from lance_nb.table.retention import auto_cleanup_policy
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset import LanceDataset
    from lance_nb.explorer.stage.edit_forms import EditForm
    from lance_nb.writing.branching import BranchDeletion
    from lance_nb.writing.cleanup import CleanupExplanation
    from lance_nb.writing.stage_preview import StagePreview

TYPED_VERSIONS = 10
TYPED_BYTES = 10**9
TYPED_CHARS = 60
MAX_READ = 50
MAX_FRAGMENTS = 50_000
MAX_NAMED = 6
MAX_RUNS = 4
NO_UNDO = "Cannot be undone: no copy of the deleted files is kept."


@dataclass(frozen=True, slots=True)
class ActReview:
    """What an act takes away; ``removed`` are versions of ``branch`` that it removes."""

    button: str
    consequences: tuple[Consequence, ...] = ()
    typed: str = ""
    is_final: bool = False
    is_empty: bool = False
    branch: str | None = None
    removed: frozenset[int] = frozenset()

    @property
    def key(self) -> str:
        """Identify what is shown: an approval of anything else is refused."""
        shown = [
            self.button,
            *(consequence.text for consequence in self.consequences),
            sorted(self.removed),
        ]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]

    def more(self, *consequences: Consequence) -> ActReview:
        """Return the review with more consequences, the lasting ones last."""
        last = [consequence for consequence in self.consequences if consequence.text == NO_UNDO]
        other_consequences = [
            consequence for consequence in self.consequences if consequence.text != NO_UNDO
        ]
        return replace(self, consequences=(*other_consequences, *consequences, *last))

    def to_json(self) -> dict[str, Any]:
        """Return the review as JSON-able values."""
        return {
            "button": self.button,
            "consequences": [consequence.to_json() for consequence in self.consequences],
            "typed": self.typed,
            "final": self.is_final,
            "empty": self.is_empty,
            "key": self.key,
        }


def word_to_type(name: str, num_versions: int, size_bytes: int) -> str:
    """Return the word that approves an act; a name that cannot be typed is replaced by "delete"."""
    if num_versions < TYPED_VERSIONS and size_bytes < TYPED_BYTES:
        return ""
    is_plain = name.isascii() and name == visible(name) == name.strip()
    return name if is_plain and 0 < len(name) <= TYPED_CHARS else "delete"


def review_of_cleanup(dataset: LanceDataset, plan: CleanupExplanation) -> ActReview:
    """Review the clean-up of the branch that ``dataset`` is on."""
    stats, branch = plan.stats, dataset.branch
    num_versions = len(plan.versions)
    if not plan.candidate_files and not plan.versions:
        nothing = Consequence(OK, "Nothing to remove: no version and no file matches the rules.")
        protected = _kept(dataset, plan)
        return ActReview("Nothing to remove", (nothing, *protected), is_empty=True, branch=branch)
    subject = text.plural(num_versions, "version") if num_versions else text.plural(
        len(plan.candidate_files), "unreferenced file"
    )  # fmt: skip
    kinds = (
        ("data file", stats.data_files_removed),
        ("deletion file", stats.deletion_files_removed),
        ("index file", stats.index_files_removed),
        ("transaction file", stats.transaction_files_removed),
    )
    files = ", ".join(text.plural(count, noun) for noun, count in kinds if count)
    lost = [Consequence(WARN, f"Frees {text.size(stats.bytes_removed)}: {files or 'manifests'}.")]
    if num_versions:
        lost.insert(
            0, Consequence(WARN, f"Removes {subject}: {versions_text(branch, plan.versions)}.")
        )
    lost += _rows_lost(dataset, plan)
    return ActReview(
        f"Remove {subject}",
        (*lost, *_kept(dataset, plan), _CLONES, Consequence(WARN, NO_UNDO)),
        typed=word_to_type(dataset.name, num_versions, stats.bytes_removed),
        is_final=True,
        branch=branch,
        removed=frozenset(plan.versions),
    )


_CLONES = Consequence(
    OK, "Shallow clones in other places are not known here: they lose the files they share."
)


def versions_text(branch: str | None, numbers: Sequence[int]) -> str:
    """Name versions as runs: ``main:1 to main:4, main:7``."""
    runs, _ = runs_of(list(numbers))
    words = [
        text.ref_label(branch, first)
        if count == 1
        else f"{text.ref_label(branch, first)} to {text.ref_label(branch, first + count - 1)}"
        for first, count in runs[:MAX_RUNS]
    ]
    left = sum(count for _, count in runs[MAX_RUNS:])
    return ", ".join(words) + (f" and {text.count(left)} more" if left else "")


def _rows_lost(dataset: LanceDataset, plan: CleanupExplanation) -> Iterator[Consequence]:
    """Count the rows that are stored in the data files that go."""
    going: dict[int, set[str]] = {}
    for file in plan.candidate_files:
        if file.kind == "data" and file.version is not None:
            going.setdefault(file.version, set()).add(file.path.rpartition("/")[2])
    if not going:
        return
    rows, left, is_complete = 0, MAX_FRAGMENTS, len(going) <= MAX_READ
    for version in sorted(going, reverse=True)[:MAX_READ]:
        try:
            manifest = dataset.checkout_version((dataset.branch, version)).opened[1].manifest
        except LanceError:
            is_complete = False
            continue
        fragments = manifest.fragments
        left -= len(fragments)
        if left < 0:
            is_complete = False
            break
        names = going[version]
        rows += sum(
            fragment.physical_rows
            for fragment in fragments
            if any(file.path.rpartition("/")[2] in names for file in fragment.files)
        )
    least = "" if is_complete else "at least "
    yield Consequence(
        WARN,
        f"These data files store {least}{text.plural(rows, 'row')}; the rows of the versions that "
        "stay are in files that stay.",
    )


def _kept(dataset: LanceDataset, plan: CleanupExplanation) -> Iterator[Consequence]:
    """Name what stays although it is old: tagged versions, and those that branches start from."""
    removed = set(plan.versions)
    tags = [
        f"{text.name(name)} ({text.ref_label(dataset.branch, int(tag_record['version']))})"
        for name, tag_record in sorted(dataset.tags.list().items())
        if tag_record.get("branch") == dataset.branch and int(tag_record["version"]) not in removed
    ]
    if tags:
        yield Consequence(OK, f"Tagged versions stay: {_some(tags)}.")
    forks = [
        f"{text.ref_label(dataset.branch, referenced_branch.referenced_version)} for "
        f"{text.name(referenced_branch.name)}"
        for referenced_branch in plan.referenced_branches
    ]
    if forks:
        yield Consequence(OK, f"Versions that branches started from stay: {_some(forks)}.")
    stays = sum(number not in removed for number in dataset.version_numbers())
    newest = text.ref_label(dataset.branch, dataset.version)
    verb = "stays" if stays == 1 else "stay"
    line = text.name(dataset.branch or "main")
    words = f"{text.plural(stays, 'version')} of {line} {verb}, the newest is {newest}."
    yield Consequence(OK, words)


def _some(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {text.count(more)} more" if more > 0 else "")


def with_screen(review: ActReview, place: tuple[str | None, int], newest: str) -> ActReview:
    """Add what happens to the version on screen."""
    branch, version = place
    if branch != review.branch or version not in review.removed:
        return review
    shown = text.ref_label(branch, version)
    words = f"The version on screen, {shown}, is removed: the view goes to {newest}."
    return review.more(Consequence(WARN, words))


def with_staged(
    review: ActReview, other_changes: Iterable[tuple[str, str | None, int]]
) -> ActReview:
    """Add staged changes that were planned on a version that is removed: (title, place)."""
    titles = [
        title
        for title, branch, version in other_changes
        if branch == review.branch and version in review.removed
    ]
    if not titles:
        return review
    noun = text.plural(len(titles), "staged change")
    were = "was" if len(titles) == 1 else "were"
    words = f"{noun} {were} planned on a removed version: re-run {_some(titles)}."
    return review.more(Consequence(WARN, words))


def review_of_branch(deletion: BranchDeletion, consequences: Sequence[Consequence]) -> ActReview:
    """Review the deletion of a branch."""
    own = [version for version in deletion.versions if version > (deletion.fork.version or 0)]
    name = text.name(deletion.name)
    with_versions = f" with {text.plural(len(own), 'version')}" if own else ""
    lasting = [Consequence(WARN, NO_UNDO)] if own and not deletion.users else []
    return ActReview(
        f"Delete branch {name}{with_versions}",
        (*consequences, *lasting),
        typed=word_to_type(deletion.name, len(own), deletion.size_bytes if own else 0),
        is_final=bool(own),
        is_empty=bool(deletion.users),
    )


def review_of_edit(
    dataset: LanceDataset, form: EditForm, preview: StagePreview | None
) -> ActReview | None:
    """Review a staged edit that takes something out of the newest version; None for others."""
    label = text.ref_label(dataset.branch, dataset.version)
    undo = Consequence(OK, f"Can be undone by restoring {label}, until a clean-up removes it.")
    if form.verb == "drop_columns":
        names = [text.name(name) for name in form.args["columns"]]
        subject = f"column {names[0]}" if len(names) == 1 else f"{len(names)} columns"
        rows = text.plural(dataset.count_rows(), "row")
        lost = Consequence(
            WARN, f"The values of {_some(names)} in {rows} leave the newest version."
        )
        return ActReview(f"Drop {subject}", (lost, *_indices(dataset, form.args["columns"]), undo))
    if form.verb == "overwrite" and preview is not None:
        before = text.plural(preview.num_rows_before, "row")
        after = text.plural(preview.num_rows_after, "row")
        lost = Consequence(WARN, f"All {before} are replaced by {after}.")
        dropped = [Consequence(WARN, text.line(f"Drops {part}.")) for part in preview.dropped]
        return ActReview(f"Overwrite {before}", (lost, *dropped, undo))
    return None


def review_of_auto_cleanup(dataset: LanceDataset) -> ActReview | None:
    """Review the clean-up that the dataset's configuration asks for after the next commit.

    None if there is none. ``dataset`` is the version that the commit was planned on.
    """
    from lance_nb.writing import cleanup

    try:
        newest = dataset.checkout_version((dataset.branch, None))
        policy = auto_cleanup_policy(newest.version + 1, newest.config())
        if policy is None:
            return None
        if policy.retain_versions is not None:  # the version of the commit will be one of them
            policy = replace(policy, retain_versions=policy.retain_versions - 1)
        options = cleanup.deleting(None, None, None)
        plan = cleanup.explain(*dataset.opened, policy, options)
    except NotFoundError:
        return None  # of the branch: the commit says so
    except LanceError as error:
        words = f"The automatic clean-up of this dataset will not run: {error}"
        return ActReview("Commit", (Consequence(OK, text.line(words)),))
    if not plan.versions and not plan.candidate_files:
        return None
    review = review_of_cleanup(dataset, plan)
    why = Consequence(
        WARN, "The configuration of this dataset starts a clean-up after this commit."
    )
    button = f"Commit and {review.button[0].lower()}{review.button[1:]}"
    return replace(review, button=button, consequences=(why, *review.consequences))


def joined(edit: ActReview | None, cleanup: ActReview | None) -> ActReview | None:
    """Return one review for an edit and the clean-up that its commit starts."""
    if edit is None or cleanup is None:
        return edit or cleanup
    if not cleanup.removed:
        return replace(edit, consequences=(*edit.consequences, *cleanup.consequences))
    button = f"{edit.button} and {cleanup.button.removeprefix('Commit and ')}"
    consequences = (*edit.consequences, *cleanup.consequences)
    return replace(cleanup, button=button, consequences=consequences)


def _indices(dataset: LanceDataset, columns: Sequence[str]) -> Iterator[Consequence]:
    names = {
        index["name"]
        for index in dataset.list_indices()
        if any(field == name or field.startswith(f"{name}.")
               for field in index["fields"] for name in columns)
    }  # fmt: skip
    if names:
        shown = _some([text.name(name) for name in sorted(names)])
        yield Consequence(WARN, f"Indices on them are dropped: {shown}.")
