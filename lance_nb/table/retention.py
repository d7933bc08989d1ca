"""Which versions of a branch a clean-up may delete, and when a commit starts one by itself.

A version may be deleted when it is older than ``older_than``, not among the last
``retain_versions`` and, if ``versions`` are given, one of them. These are always kept: the version
that is open and those after it, tagged versions, versions that a branch (or a branch of that
branch) started from, detached versions.

The age of a version is the commit time in its manifest. Reading all manifests for it would cost
more than everything else, so the cut-off is found by binary search: commit times ascend with
version numbers, except where the clocks of several writers differ. A version before the cut-off is
deleted if its file was last written before it too; if not (the dataset was copied), its manifest is
read.

A clean-up after a commit is configured by the keys ``lance.auto_cleanup.interval`` (every so many
versions; 0: always), ``.older_than`` (a time span such as "14days" or "1h 30m") and
``.retain_versions``. The interval and one of the others are needed.

Limits: with writers whose clocks differ, a version near the cut-off may be judged by the time at
which its file was stored. A version whose number is a multiple of the interval starts a clean-up,
whoever commits it. Time spans have the syntax of the Rust crate humantime; a month is 30.44 days, a
year 365.25.
Source: ``cleanup_old_versions``, ``auto_cleanup_options`` and ``optimize.enable_auto_cleanup`` of
pylance 14.0.2. There, a version that a branch started from is deleted once no version of the branch
needs its files; here it is kept as long as the branch, because merging the branch needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from lance_nb.errors import CleanupError, InvalidInputError
from lance_nb.format.layout import ManifestName
from lance_nb.format.transaction_summary import count_of
from lance_nb.value_classes import dataclass

DEFAULT_AGE = timedelta(days=14)
UNVERIFIED_AGE = timedelta(days=7)  # files that no version refers to may be of a running write

CommitTime = Callable[[ManifestName], datetime | None]


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The rules; with none of the first three, versions older than two weeks go."""

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True

    @classmethod
    def of(
        cls,
        older_than: timedelta | None,
        retain_versions: int | None,
        versions: Collection[int] | None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
    ) -> RetentionPolicy:
        """Check the arguments of a clean-up. Raises CleanupError."""
        if older_than is None and retain_versions is None and versions is None:
            older_than = DEFAULT_AGE
        if older_than is not None and not isinstance(older_than, timedelta):
            raise CleanupError(f"older_than is a timedelta, not {type(older_than).__name__}")
        if older_than is not None and older_than < timedelta(0):
            raise CleanupError(f"older_than is a span back in time, not {older_than}")
        if retain_versions is not None:
            if isinstance(retain_versions, bool) or not isinstance(retain_versions, int):
                raise CleanupError(f"retain_versions is a number, not {retain_versions!r}")
            if retain_versions < 1:
                raise CleanupError(f"retain_versions must be at least 1, not {retain_versions}")
        if versions is not None:
            if not versions:
                raise CleanupError("versions is empty: name the versions to delete, or leave it")
            if any(
                isinstance(version, bool) or not isinstance(version, int) for version in versions
            ):
                raise CleanupError("versions is a list of version numbers")
        chosen = None if versions is None else frozenset(versions)
        return cls(
            older_than,
            retain_versions,
            chosen,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )


@dataclass(frozen=True, slots=True)
class Protection:
    """Versions of one branch that are kept: version -> names of the tags, of the branches.

    ``merged``: versions that another branch has merged last, the base of the next merge.
    """

    tags: Mapping[int, Sequence[str]]
    forks: Mapping[int, Sequence[str]]
    merged: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Age:
    """Looks up when versions were committed, and when their files were stored."""

    now: datetime
    committed: CommitTime
    stored: Callable[[ManifestName], datetime | None]


def removable(
    policy: RetentionPolicy,
    names: Sequence[ManifestName],
    current: int,
    age: Age,
    protection: Protection,
) -> list[ManifestName]:
    """Return the versions that may be deleted, oldest first; ``names`` are all of the branch.

    Raises CleanupError when tagged versions are among them and the policy says to raise.
    """
    removable_names = list(names)
    if policy.retain_versions is not None:
        removable_names = removable_names[: max(len(removable_names) - policy.retain_versions, 0)]
    removable_names = [name for name in removable_names if name.version < current]
    if policy.versions is not None:
        removable_names = [name for name in removable_names if name.version in policy.versions]
    if policy.older_than is not None:
        removable_names = _older(removable_names, age, _cutoff(age.now, policy.older_than))
    tagged = {
        name.version: protection.tags[name.version]
        for name in removable_names
        if name.version in protection.tags
    }
    if tagged and policy.error_if_tagged_old_versions:
        shown = ", ".join(
            f"{tag!r} (version {number})" for number, tags in tagged.items() for tag in tags
        )
        raise CleanupError(
            f"{count_of(len(tagged), 'tagged version')} would be cleaned up, which never happens: "
            f"{shown}. Delete the tags, or pass error_if_tagged_old_versions=False to clean up the "
            "other versions"
        )
    protected = {*tagged, *protection.forks, *protection.merged}
    return [name for name in removable_names if name.version not in protected]


def _cutoff(now: datetime, span: timedelta) -> datetime:
    """Return the time that lies a span before ``now``; year 1 for spans that go beyond it."""
    try:
        return now - span
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)


def _older(names: Sequence[ManifestName], age: Age, cutoff: datetime) -> list[ManifestName]:
    def is_old(name: ManifestName) -> bool:
        moment = age.committed(name) or age.stored(name)
        return moment is not None and moment < cutoff

    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_old(names[middle]) else (low, middle)
    older = []
    for name in names[:low]:
        stored = age.stored(name)
        if (stored is not None and stored < cutoff) or is_old(name):
            older.append(name)
    return older


def is_settled(modified: datetime | None, now: datetime) -> bool:
    """Tell whether a file is too old to belong to a write that is still running."""
    return modified is not None and now - modified >= UNVERIFIED_AGE


INTERVAL = "lance.auto_cleanup.interval"
OLDER_THAN = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS = "lance.auto_cleanup.retain_versions"

DEFAULT_INTERVAL = 20
_OPTIONS = frozenset({"interval", "older_than_seconds"})
_DAY = 86_400.0
_SECONDS = {
    **dict.fromkeys(("nanos", "nsec", "ns"), 1e-9),
    **dict.fromkeys(("usec", "us"), 1e-6),
    **dict.fromkeys(("millis", "msec", "ms"), 1e-3),
    **dict.fromkeys(("seconds", "second", "secs", "sec", "s"), 1.0),
    **dict.fromkeys(("minutes", "minute", "mins", "min", "m"), 60.0),
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 3600.0),
    **dict.fromkeys(("days", "day", "d"), _DAY),
    **dict.fromkeys(("weeks", "week", "w"), 7 * _DAY),
    **dict.fromkeys(("months", "month", "M"), 30.44 * _DAY),
    **dict.fromkeys(("years", "year", "y"), 365.25 * _DAY),
}
_PART = re.compile(r"\s*([0-9]{1,15})\s*([A-Za-z]{1,7})\s*")


def auto_cleanup_policy(version: int, config: Mapping[str, str]) -> RetentionPolicy | None:
    """Return the policy of the clean-up that follows the commit of this version, None for none.

    Raises CleanupError for configuration values that cannot be parsed.
    """
    older_than, retain = config.get(OLDER_THAN), config.get(RETAIN_VERSIONS)
    if INTERVAL not in config or (older_than is None and retain is None):
        return None
    interval = _number(INTERVAL, config[INTERVAL])
    if interval and version % interval:
        return None
    return RetentionPolicy.of(
        None if older_than is None else parse_time_span(older_than),
        None if retain is None else _number(RETAIN_VERSIONS, retain),
        None,
    )


def parse_time_span(text: str) -> timedelta:
    """Parse a time span such as "1h 30m". Raises CleanupError."""
    position, seconds = 0, 0.0
    while position < len(text):
        part = _PART.match(text, position)
        unit = None if part is None else _SECONDS.get(part[2])
        if part is None or unit is None:
            break
        seconds, position = seconds + int(part[1]) * unit, part.end()
    if not text or position < len(text):
        raise CleanupError(
            f"{OLDER_THAN} is {text!r}: a span is numbers with units, for example '14days' or "
            "'1h 30m'"
        )
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max


def auto_cleanup_config(options: Mapping[str, object]) -> dict[str, str]:
    """Return the configuration for ``auto_cleanup_options``, with defaults for missing ones.

    Raises InvalidInputError for unusable ones, where pylance takes the default.
    """
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise InvalidInputError(f"auto_cleanup_options has no {unknown[0]!r}: it takes "
                                f"{', '.join(sorted(_OPTIONS))}")  # fmt: skip
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInputError(f"auto_cleanup_options: {name} is a number, not {value!r}")
    age = options.get("older_than_seconds")
    return {
        INTERVAL: str(options.get("interval", DEFAULT_INTERVAL)),
        OLDER_THAN: f"{DEFAULT_AGE.days}days" if age is None else f"{age}s",
    }


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(2**63))):
        raise CleanupError(f"{key} is {text!r}, which is not a number")
    return int(text)
