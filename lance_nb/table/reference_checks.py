"""Names that lead nowhere: tags, branches, and files that are referred to and not there.

And the other way round, files that no version refers to.

Limits: from manifests and one listing; a file under a base path outside of the dataset is asked for
one by one, and only if that place was allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lance_nb.errors import CorruptFileError, InvalidInputError, LanceError
from lance_nb.format.layout import branch_path, branch_root, tag_path
from lance_nb.format.manifest_files import DATA, DELETION, INDEX, NamedFile, VersionFiles
from lance_nb.table.cleanup_plan import needed_identities
from lance_nb.table.file_references import References
from lance_nb.table.line_checks import put_aside
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.survey import LineOfVersions, StoredFile, Survey
from lance_nb.table.verification_report import Finding

Load = Callable[[str | None, int], Snapshot]
Place = Callable[[str, VersionFiles], Locations]
_MISSING = {DATA: "data-file-missing", DELETION: "deletion-file-missing", INDEX: "index-missing"}
_UNUSABLE = {"tag": "tag-unreadable", "branch": "branch-unreadable", "name": "branch-name"}


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


def ref_findings(survey: Survey) -> Iterator[Finding]:
    """Find records of tags and branches that cannot be read or do not fit the versions."""
    for one in survey.unusable:
        if one.kind == "line":
            branch = survey.lines[one.name].branch
            yield Finding("naming-mixed", str(one.error), "_versions", branch, error=one.error)
            continue
        path = (tag_path if one.kind == "tag" else branch_path)(one.name)
        yield Finding(_UNUSABLE[one.kind], str(one.error), path, error=one.error)
    for name, tag in survey.tags.items():
        line = _line(survey, tag.branch)
        place = f"{tag.branch or 'main'}:{tag.version}"
        if line is None or not _has(line, tag.version):
            text = f"tag {name!r} points at {place}, which does not exist"
            if line is not None and tag.version in put_aside(survey, line.folder):
                text = (
                    f"tag {name!r} points at {place}, whose manifest a repair has put aside, as it "
                    "could not be read"
                )
            yield Finding("tag-dangling", text, tag_path(name))
        else:
            wrong = _wrong_size(survey, line, tag.version, tag.manifest_size_bytes)
            if wrong:
                yield Finding("tag-manifest-size", f"tag {name!r}: {wrong}", tag_path(name))
    yield from _branch_findings(survey)


def _branch_findings(survey: Survey) -> Iterator[Finding]:
    for name, branch in survey.branches.items():
        path = branch_path(name)
        if not survey.lines[branch_root(name)].names:
            text = f"branch {name!r} has a record and no versions: its creation was interrupted"
            yield Finding("branch-without-versions", text, path, name)
        parent = _line(survey, branch.parent_branch)
        place = f"{branch.parent_branch or 'main'}:{branch.parent_version}"
        if parent is None or not _has(parent, branch.parent_version):
            text = f"branch {name!r} started from {place}, which does not exist any more"
            yield Finding("branch-parent-missing", text, path, name)
        else:
            said = branch.manifest_size_bytes
            wrong = _wrong_size(survey, parent, branch.parent_version, said)
            if wrong:
                yield Finding("branch-manifest-size", f"branch {name!r}: {wrong}", path, name)
    told = {branch_root(one.name) for one in survey.unusable if one.kind in ("branch", "name")}
    for folder, line in survey.lines.items():
        if line.branch is None or line.branch in survey.branches or folder in told:
            continue
        text = (
            f"folder {folder!r} has {len(line.names)} versions and no record of a branch: its "
            "creation or deletion was interrupted, or is going on"
        )
        yield Finding("branch-without-record", text, folder, line.branch)


def _line(survey: Survey, branch: str | None) -> LineOfVersions | None:
    return survey.lines.get("" if branch is None else branch_root(branch))


def _has(line: LineOfVersions, version: int) -> bool:
    return any(one.version == version for one in (*line.names, *line.detached))


def _wrong_size(survey: Survey, line: LineOfVersions, version: int, said: int) -> str | None:
    """Return what is wrong with the size that a record says of a manifest; 0 is not recorded."""
    name = next(one for one in (*line.names, *line.detached) if one.version == version)
    file = survey.manifest(line.folder, name)
    if file is None or said in (0, file.size_bytes):
        return None
    return f"the record says {said} bytes of the manifest, which has {file.size_bytes}"


def file_findings(dataset: Dataset) -> Iterator[Finding]:
    """Find files that versions name and that are not there, or not where a base path says."""
    there = {one.path for one in dataset.survey.files}
    folders = {one.path.rpartition("/")[0] for one in dataset.survey.files}
    refused: set[tuple[str, int | None]] = set()
    for folder, line in dataset.references.lines.items():
        home = line.home
        branch = dataset.branch(home)
        for file, at in line.first_named.items():
            if file.kind in (DATA, DELETION) or (file.kind == INDEX and file.size_bytes):
                version = line.versions[at]
                found = _missing(dataset, home, version, file, there | folders)
                if found is None:
                    continue
                code, text, error = found
                if code.startswith("base-"):  # once for all of its files
                    if (folder, file.base_id) in refused:
                        continue
                    refused.add((folder, file.base_id))
                yield Finding(code, text, file.path, branch, version.version, error=error)


def _missing(
    dataset: Dataset, folder: str, version: VersionFiles, file: NamedFile, there: set[str]
) -> tuple[str, str, LanceError | None] | None:
    missing = _MISSING[file.kind], "versions from this one on refer to it, and it is not there"
    try:
        store, path = dataset.place(folder, version).locate(file.path, file.base_id)
        root = dataset.survey.root.uri
        if store.uri == root or store.uri.startswith(f"{root}/"):
            inside = store.uri[len(root) :].lstrip("/")
            whole = f"{inside}/{path}" if inside else path
            found = whole in there or (file.kind != INDEX and store.exists(path))  # behind a link
        else:
            found = bool(store.list_recursive(path)) if file.kind == INDEX else store.exists(path)
    except CorruptFileError as error:
        return "base-unknown", str(error), error
    except InvalidInputError as error:
        code = missing[0] if file.base_id is None else "base-not-allowed"
        return code, str(error), error
    except LanceError as error:
        return missing[0], str(error), error
    return None if found else (*missing, None)


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
