"""Verify a dataset, or validate the version that is open.

Source: ``LanceDataset.validate`` of pylance 14.0.2; ``verify`` is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest_history import VersionFiles
from lance_nb.session.session import Session
from lance_nb.table.file_cache import DeletionCache, FileCache
from lance_nb.table.locations import Locations
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.survey import take_survey
from lance_nb.table.verification.findings import SEVERITIES, Verification
from lance_nb.table.verification.fragments import cheap_checks
from lance_nb.table.verification.manifests import refused_states
from lance_nb.table.verification.references import Dataset, Load
from lance_nb.table.verification.verify import verify as verify_dataset
from lance_nb.writing.maintenance import read_all

Progress = Callable[[int, int], object]
_MANIFEST_BYTES_MAX = 64 * 1024 * 1024  # of the versions that a verification holds


def validate(snapshot: Snapshot, fragments: Sequence[Fragment] | None = None) -> None:
    """Check fragments of a version, all by default; raise the first thing that is wrong."""
    snapshot = replace(snapshot, files=FileCache(), deletions=DeletionCache())  # look again
    snapshot.manifest.fragments.counts()
    for fragment in snapshot.manifest.fragments if fragments is None else fragments:
        for check in cheap_checks(snapshot, fragment):
            check.run()
    state = next(refused_states(snapshot), None)
    if state is not None:
        expected = "a state that current releases write"
        raise CorruptFileError(snapshot.manifest.path, None, expected, state.text)


def verify(
    session: Session,
    progress: Progress | None,
    *,
    values: bool,
    checksums: bool | None = None,
    sample: float | None = None,
    seed: int | None = None,
    raise_on_error: bool,
) -> Verification:
    """Verify every version of every branch."""
    session = replace(session, files=FileCache(), deletions=DeletionCache(), logs={}, checks=None)
    survey = take_survey(session.root, tolerant=True)
    count = sum(len(line.names) + len(line.detached) for line in survey.lines.values())
    done = 0

    def tick(*_: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, 2 * count)

    def place(folder: str, version: VersionFiles) -> Locations:
        return Locations(
            session.root,
            survey.store(folder),
            version.base_paths,
            allowed=session.trusted_bases,
            options=session.storage_options,
        )

    dataset = Dataset(survey, read_all(survey, tick), _load_once(session), place)
    checks_sums = values if checksums is None else checksums
    verification = verify_dataset(
        dataset, values=values, checksums=checks_sums, sample=sample, seed=seed, tick=tick
    )
    if raise_on_error and not verification.ok:
        first = min(verification.findings, key=lambda finding: SEVERITIES.index(finding.severity))
        raise first.error or CorruptFileError(first.path, None, "a whole dataset", first.message)
    return verification


def _load_once(session: Session) -> Load:
    """Return a function that loads a version and holds it: a verification looks at each often."""
    snapshots: dict[Target, Snapshot] = {}
    room_bytes = _MANIFEST_BYTES_MAX

    def load(branch: str | None, version: int) -> Snapshot:
        nonlocal room_bytes
        target = Target(branch, version)
        snapshot = snapshots.get(target)
        if snapshot is None:
            snapshot = session.load(target)
            room_bytes -= snapshot.manifest.size_bytes
            if room_bytes >= 0:
                snapshots[target] = snapshot
        return snapshot

    return load
