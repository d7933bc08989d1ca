"""Names that lead nowhere: tags, branches and files that are referred to and not there.

And the other way round, files that no version refers to.

Limits: from manifests and one listing; a file under a base path outside of the dataset is asked for
one by one, and only if that place was allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.format.layout import branch_root
from lance_nb.format.manifest_files import DATA, DELETION, INDEX, NamedFile, VersionFiles
from lance_nb.table.cleanup_plan import needed_identities
from lance_nb.table.file_references import References
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.stored_files import StoredFile
from lance_nb.table.survey import Survey
from lance_nb.table.verification_report import Problem

Load = Callable[[str | None, int], Snapshot]
Place = Callable[[str, VersionFiles], Locations]
MISSING = "missing file"


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is verified: the survey, the references, and how to load a version and find files."""

    survey: Survey
    references: References
    load: Load
    place: Place

    def branch(self, folder: str) -> str | None:
        """Return the branch in a folder."""
        return self.survey.lines[folder].branch


def ref_problems(survey: Survey) -> Iterator[Problem]:
    """Find tags and branches that point at versions that do not exist."""
    for name, tag in survey.tags.items():
        if not _has_version(survey, tag.branch, tag.version):
            place = f"{tag.branch or 'main'}:{tag.version}"
            yield Problem("tag", None, None, name, f"it points at {place}, which does not exist")
    for name, branch in survey.branches.items():
        if not survey.lines[branch_root(name)].names:
            yield Problem("branch", None, None, name, "it has a record and no versions")
        if not _has_version(survey, branch.parent_branch, branch.parent_version):
            place = f"{branch.parent_branch or 'main'}:{branch.parent_version}"
            text = f"it started from {place}, which does not exist any more: it cannot be merged"
            yield Problem("branch", None, None, name, text)


def _has_version(survey: Survey, branch: str | None, version: int) -> bool:
    line = survey.lines.get("" if branch is None else branch_root(branch))
    if line is None:
        return False
    return any(one.version == version for one in (*line.names, *line.detached))


def damaged_manifests(dataset: Dataset) -> Iterator[Problem]:
    """List the manifests that could not be read."""
    for folder, line in dataset.references.lines.items():
        for name, error in line.damaged:
            branch = dataset.branch(folder)
            yield Problem("manifest", branch, name.version, name.path, str(error), error)


def file_problems(dataset: Dataset) -> Iterator[Problem]:
    """Find files that versions name and that are not there."""
    there = {one.path for one in dataset.survey.files}
    folders = {one.path.rpartition("/")[0] for one in dataset.survey.files}
    for folder, line in dataset.references.lines.items():
        for file, at in line.first_named.items():
            if file.kind in (DATA, DELETION) or (file.kind == INDEX and file.size_bytes):
                version = line.versions[at]
                text = _missing(dataset, folder, version, file, there | folders)
                if text is not None:
                    kind, message = text
                    branch = dataset.branch(folder)
                    yield Problem(kind, branch, version.version, file.path, message)


def _missing(
    dataset: Dataset, folder: str, version: VersionFiles, file: NamedFile, there: set[str]
) -> tuple[str, str] | None:
    try:
        store, path = dataset.place(folder, version).locate(file.path, file.base_id)
    except InvalidInputError as error:
        return "unreachable", str(error)
    except LanceError as error:
        return "manifest", str(error)
    root = dataset.survey.root.uri
    if store.uri == root or store.uri.startswith(f"{root}/"):
        inside = store.uri[len(root) :].lstrip("/")
        whole = f"{inside}/{path}" if inside else path
        found = whole in there or (file.kind != INDEX and store.exists(path))  # behind a link
    else:
        found = bool(store.list_recursive(path)) if file.kind == INDEX else store.exists(path)
    return None if found else (MISSING, "versions from this one on refer to it")


def unreferenced(dataset: Dataset) -> list[StoredFile]:
    """List the files of the usual folders that no version refers to."""
    files = dataset.survey.files
    known = dataset.references.known([one.identity for one in files]).tolist()
    needed = needed_identities(dataset.references, {})
    return [
        one
        for one, key in zip(files, known, strict=True)
        if one.kind in (DATA, DELETION, INDEX) and not (key >= 0 and needed[key])
    ]
