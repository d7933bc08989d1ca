"""Every error that lance_nb raises, in one tree grouped by what the caller would do about it.

::

    LanceError
    ├── InvalidInputError (ValueError)             fix the call
    │   ├── SchemaMismatchError (OSError)
    │   ├── InvalidRefError (OSError)
    │   ├── PredicateError (OSError)
    │   ├── ArgumentError (TypeError, OverflowError)
    │   ├── RowRangeError (OSError)
    │   ├── MergeInsertError (OSError)
    │   └── CleanupError (OSError)
    ├── NotFoundError (LookupError)                fix the name
    │   ├── DatasetNotFoundError (FileNotFoundError, ValueError)
    │   ├── VersionNotFoundError (ValueError)
    │   ├── RefNotFoundError (ValueError)
    │   ├── ColumnNotFoundError (ValueError, OSError)
    │   └── ObjectNotFoundError (FileNotFoundError, ValueError)
    ├── AlreadyExistsError                         pick another name
    │   ├── DatasetAlreadyExistsError (OSError)
    │   ├── RefConflictError (ValueError)
    │   └── ObjectExistsError (FileExistsError)
    ├── FormatError                                the bytes are wrong
    │   └── CorruptFileError (OSError)
    ├── NotSupportedError (NotImplementedError)    needs a newer or larger lance_nb
    │   └── MissingPackageError (ImportError)      install what it names
    ├── CommitError (OSError)                      the write did not land
    │   ├── CommitConflictError                    do not retry
    │   ├── RetryableCommitConflictError           read again, do it again
    │   ├── TooMuchWriteContentionError            try later
    │   └── ExpectationFailedError                 mend the data, or change the expectation
    ├── CommitStateUnknownError (OSError)          it may have landed: look first, keep the files
    ├── StorageError (OSError)                     network, permissions; may pass by itself
    ├── CancelledError                             it was cancelled
    │   └── RunCancelledError                      tasks were done, nothing was committed
    ├── SideEffectWarning (UserWarning)            a warning, unless a filter makes it an error
    └── InternalError                              a broken invariant of ours: report it

Each class also derives from the builtin that pylance raises in the same situation (from both where
it raises now the one, now the other), so ``except`` clauses written for pylance keep working. Every
error pickles with its fields: they go through ``super().__init__(*fields)`` and the text is built
in ``__str__`` (an error that crosses a Spark task is pickled).

The text holds no character that is invisible or that a terminal takes for a command: a hostile file
may name anything.

Limits: of a text longer than ``TEXT_CHARS_MAX`` the middle is left out. The fields stay whole.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from lance_nb import arrow_compute as pc
from lance_nb.shown_text import visible_lines, without_url_secrets

TEXT_CHARS_MAX = 1200
_END_CHARS = 400
_BYTES_SHOWN = 8
RESTORE = "restore it from a copy, or check out a version that does not use it"
RESTORE_VERSION = "restore it from a copy, or open another version"  # every version uses its own


class LanceError(Exception):
    """The root: catch this to catch everything that lance_nb raises on purpose.

    No field, text or pickle holds the password or the signature of a URL.
    """

    def __init__(self, *fields: object) -> None:
        super().__init__(*map(_without_secrets, fields))

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, _without_secrets(value))

    def __str__(self) -> str:
        return clip(str(self.args[0])) if self.args else type(self).__name__


def _without_secrets(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_without_secrets, value))
    return without_url_secrets(value) if isinstance(value, str) else value


def clip(text: str) -> str:
    """Make a text fit to show: hidden characters seen, the middle of a long one left out."""
    left_out = len(text) - TEXT_CHARS_MAX
    if left_out > 0:
        start = TEXT_CHARS_MAX - _END_CHARS
        text = f"{text[:start]}[... {left_out} characters ...]{text[-_END_CHARS:]}"
    return visible_lines(text)


class InvalidInputError(LanceError, ValueError):
    """The call cannot mean anything: fix its arguments."""


class SchemaMismatchError(InvalidInputError, OSError):
    """Data and schema do not fit each other: columns, types, nulls or the number of rows."""


class InvalidRefError(InvalidInputError, OSError):
    """A tag or branch name breaks the naming rules, or a ref has no meaning."""


class PredicateError(InvalidInputError, OSError):
    """A filter cannot be parsed or does not fit the schema."""


class ArgumentError(InvalidInputError, TypeError, OverflowError):
    """An argument is of the wrong type, or a number that its type cannot be."""


class RowRangeError(InvalidInputError, OSError):
    """A position lies behind the last row of a dataset or a fragment."""


class MergeInsertError(InvalidInputError, OSError):
    """An upsert cannot be done: its clauses, or which rows of source and target match."""


class BasePathError(InvalidInputError, OSError):
    """A base path is not registered, registered twice, or named in a way that fits none."""


class CleanupError(InvalidInputError, OSError):
    """The rules of a clean-up make no sense, or hold for tagged versions, which always stay."""


class NotFoundError(LanceError, LookupError):
    """Something that was named does not exist."""

    __str__ = LanceError.__str__


class DatasetNotFoundError(NotFoundError, FileNotFoundError, ValueError):
    """There is no Lance dataset at ``uri``."""

    def __init__(self, uri: str, reason: str = "") -> None:
        super().__init__(uri, reason)
        self.uri = uri
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.uri, self.reason)

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return clip(
            f"no Lance dataset at {self.uri!r}{reason}; "
            "expected a folder with a _versions folder that holds at least one manifest"
        )


class VersionNotFoundError(NotFoundError, ValueError, OSError):
    """The dataset (or branch) has no such version. ``tag`` is the tag that names it, if one did.

    ``reason`` says what it is needed for, and what to do without it.
    """

    def __init__(
        self, uri: str, version: object, available: str = "", tag: str = "", *, reason: str = ""
    ) -> None:
        super().__init__(uri, version, available, tag)
        self.uri = uri
        self.version = version
        self.available = available
        self.tag = tag
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(type(self), reason=self.reason) if self.reason else type(self)
        return make, (self.uri, self.version, self.available, self.tag)

    def __str__(self) -> str:
        hint = f"; available: {self.available}" if self.available else ""
        hint += f": {self.reason}" if self.reason else ""
        if not self.tag:
            return clip(f"version {self.version} of {self.uri!r} was not found{hint}")
        return clip(
            f"tag {self.tag!r} names version {self.version} of {self.uri!r}, which does not exist "
            f"any more{hint}; move the tag with tags.update, or delete it with tags.delete"
        )


class RefNotFoundError(NotFoundError, ValueError, OSError):
    """No tag or branch has that name. ``kind`` is "tag", "branch" or "tag or branch"."""

    def __init__(self, kind: str, name: str, available: tuple[str, ...] = ()) -> None:
        super().__init__(kind, name, available)
        self.kind = kind
        self.name = name
        self.available = available

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kind, self.name, self.available)

    def __str__(self) -> str:
        shown = ", ".join(repr(name) for name in self.available[:10])
        more = f" and {len(self.available) - 10} more" if len(self.available) > 10 else ""
        plural = {"branch": "branches", "tag": "tags"}.get(self.kind, "names")
        hint = f"; {plural} that exist: {shown}{more}" if shown else f"; no {plural} exist"
        return clip(f"{self.kind} {self.name!r} does not exist{hint}")


class ColumnNotFoundError(NotFoundError, ValueError, OSError):
    """The schema has no such column."""

    def __init__(self, column: str, available: tuple[str, ...] = ()) -> None:
        super().__init__(column, available)
        self.column = column
        self.available = available

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.column, self.available)

    def __str__(self) -> str:
        shown = ", ".join(repr(name) for name in self.available[:20])
        more = f" and {len(self.available) - 20} more" if len(self.available) > 20 else ""
        return clip(f"no column named {self.column!r}; columns: {shown}{more}")


class IndexNotFoundError(NotFoundError, KeyError, RuntimeError):
    """The version has no index of that name."""

    def __init__(self, name: str, available: tuple[str, ...] = ()) -> None:
        super().__init__(name, available)
        self.name = name
        self.available = available

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.name, self.available)

    def __str__(self) -> str:
        shown = ", ".join(repr(name) for name in self.available[:20]) or "none"
        return clip(f"no index named {self.name!r}; indices: {shown}")


class ObjectNotFoundError(NotFoundError, FileNotFoundError, ValueError):
    """A stored object (file) does not exist."""

    def __init__(self, path: str, needed_by: str = "") -> None:
        super().__init__(path, needed_by)
        self.path = path
        self.needed_by = needed_by

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.needed_by)

    def __str__(self) -> str:
        reason = f", needed by {self.needed_by}" if self.needed_by else ""
        return clip(f"file {self.path!r} does not exist{reason}")


class AlreadyExistsError(LanceError):
    """The name is taken."""


class DatasetAlreadyExistsError(AlreadyExistsError, OSError):
    """A dataset is already there and the mode does not allow to add to it."""

    __str__ = LanceError.__str__


class RefConflictError(AlreadyExistsError, ValueError):
    """A tag or branch of that name exists, or something depends on it."""


class ObjectExistsError(AlreadyExistsError, FileExistsError):
    """``write_if_absent`` found the object there already."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)

    def __str__(self) -> str:
        return clip(f"object {self.path!r} already exists")


class FormatError(LanceError):
    """Bytes that were read do not follow the format."""


def describe_order(values: Any, *, repeats: bool = False) -> str:
    """Say where numbers stop ascending, as the ``found`` of a CorruptFileError.

    ``values`` is an array of numpy with one dimension, or of Arrow. With ``repeats`` equal
    neighbours are in order. If all are in order, the first and the last are named: a bound excludes
    one of them.

    >>> import numpy
    >>> describe_order(numpy.array([3, 42, 17]))
    '17 after 42, at index 2'
    >>> describe_order(numpy.array([3, 3, 42]), repeats=True)
    '3 values from 3 to 42'
    """
    if not len(values):
        return "no value"
    if hasattr(values, "to_string"):
        descends = (pc.less if repeats else pc.less_equal)(values[1:], values[:-1])
        positions = pc.indices_nonzero(descends)
        index = positions[0].as_py() + 1 if len(positions) else 0
    else:
        descends = values[1:] < values[:-1] if repeats else values[1:] <= values[:-1]
        index = int(descends.argmax()) + 1 if descends.any() else 0
    if index:
        before = describe_value(values, index - 1)
        return f"{describe_value(values, index)} after {before}, at index {index}"
    first, last = describe_value(values, 0), describe_value(values, len(values) - 1)
    return f"{len(values)} values from {first} to {last}"


def describe_value(values: Any, index: int) -> str:
    """Return a value of an array of numpy or Arrow as a text of at most some 100 characters.

    Arrow's own text is taken: a value that no object of Python can be has one, too.
    """
    if hasattr(values, "to_string"):
        return str(values.slice(index, 1).to_string(skip_new_lines=True))[1:-1]
    return str(values[index])


def describe_repeated(values: Any) -> str:
    """Name the least value that an array of numpy holds more than once, as ``found``.

    >>> import numpy
    >>> describe_repeated(numpy.array([7, 3, 7, 7]))
    '7 three times'
    """
    ordered = values.copy()
    ordered.sort()
    repeats = (ordered[1:] == ordered[:-1]).nonzero()[0]
    if not len(repeats):
        return f"{len(values)} different values"
    value = ordered[repeats[0]]
    count = int((values == value).sum())
    return f"{value} {({2: 'twice', 3: 'three times'}).get(count, f'{count} times')}"


def describe_bytes(data: bytes | bytearray | memoryview) -> str:
    """Return the number of bytes and the first of them, as the ``found`` of a CorruptFileError.

    >>> describe_bytes(b"LANC")
    '4 bytes: 4c 41 4e 43'
    >>> describe_bytes(bytes(100))
    '100 bytes that begin with 00 00 00 00 00 00 00 00'
    """
    if not len(data):
        return "no byte"
    shown = bytes(data[:_BYTES_SHOWN]).hex(" ")
    between = ":" if len(data) <= _BYTES_SHOWN else " that begin with"
    return f"{len(data)} byte{'s' if len(data) > 1 else ''}{between} {shown}"


class CorruptFileError(FormatError, OSError):
    """A file is damaged, truncated, or not what its name says.

    ``offset_bytes`` counts from the start of the file, ``None`` when no single place is to blame.
    ``place`` says where in the file in the format's own terms ("column 'a.b', page 3").
    ``advice`` is what to do, where it is not what helps with nearly every file: RESTORE,
    and RESTORE_VERSION with a manifest.
    """

    def __init__(
        self,
        path: str,
        offset_bytes: int | None = None,
        expected: str = "",
        found: str = "",
        place: str = "",
        *,
        advice: str = "",
    ) -> None:
        super().__init__(path, offset_bytes, expected, found, place)
        self.path = path
        self.offset_bytes = offset_bytes
        self.expected = expected
        self.found = found
        self.place = place
        self._advice = advice

    @property
    def advice(self) -> str:
        """What to do."""
        usual = RESTORE_VERSION if self.path.endswith(".manifest") else RESTORE
        return self._advice or usual

    def located(self, path: str, offset_bytes: int | None, place: str) -> CorruptFileError:
        """Return the same error with the place that the floor below could not know."""
        return CorruptFileError(
            self.path or path,
            offset_bytes if self.offset_bytes is None else self.offset_bytes,
            self.expected,
            self.found,
            self.place or place,
            advice=self._advice,
        )

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.path, self.offset_bytes, self.expected, self.found, self.place)
        return partial(type(self), advice=self._advice), fields

    @property
    def problem(self) -> str:
        """What is wrong and where, without what to do."""
        return clip(self._problem_text())

    def _problem_text(self) -> str:
        offset = f" at byte {self.offset_bytes}" if self.offset_bytes is not None else ""
        place = f" ({self.place})" if self.place else ""
        expected = f": expected {self.expected}" if self.expected else ""
        found_text = f", found {self.found}" if self.found else ""
        return f"{self.path or 'data'} is damaged{offset}{place}{expected}{found_text}"

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.path else ""  # without a file there is none to restore
        return clip(f"{self._problem_text()}{advice}")


class NotSupportedError(LanceError, NotImplementedError):
    """The format uses something this release of lance_nb does not know or do."""

    __str__ = LanceError.__str__


class MissingPackageError(NotSupportedError, ImportError):
    """An optional package is not installed; the text ends with the command that installs it.

    ``purpose`` is what needs it, ``package`` its name, ``install`` the argument of ``pip install``.
    """

    def __init__(self, purpose: str, package: str, install: str) -> None:
        super().__init__(purpose, package, install)
        self.purpose = purpose
        self.package = package
        self.install = install

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.purpose, self.package, self.install)

    @property
    def command(self) -> str:
        """The command that installs it; in a checkout of lance_nb, the extra of that checkout.

        Examples:
            >>> MissingPackageError("A picture", "Pillow", "pillow").command
            'pip install pillow'
        """
        import shlex

        checkout = Path(__file__).resolve().parent.parent
        extra = self.install.removeprefix("lance-nb")
        if extra == self.install or not (checkout / "pyproject.toml").is_file():
            return f"pip install {shlex.quote(self.install)}"
        return f"pip install -e {shlex.quote(f'{checkout}{extra}')}"

    def __str__(self) -> str:
        return clip(f"{self.purpose} needs {self.package}, which is not installed: {self.command}")


class CommitError(LanceError, OSError):
    """The write did not land; the dataset is as it was."""

    __str__ = LanceError.__str__


class CommitConflictError(CommitError):
    """A concurrent commit makes this one meaningless: do not retry it."""


class RetryableCommitConflictError(CommitError):
    """A concurrent commit got there first: read the new version and do the change again."""


class TooMuchWriteContentionError(CommitError):
    """Every attempt lost the race; try again later."""


class ExpectationFailedError(CommitError):
    """The commit would break an expectation, and the dataset's gate refuses such commits."""


class CommitStateUnknownError(LanceError, OSError):
    """The change may or may not have landed: look before retrying, and delete nothing.

    Also when it has landed and the disk did not confirm it, which the text says. Of a commit,
    ``transaction_uuid`` is what to look for and ``version`` the number that it would have; of a
    tag or a branch's record, they are empty.
    """

    def __init__(
        self, problem: str, transaction_uuid: str = "", version: int | None = None
    ) -> None:
        super().__init__(problem, transaction_uuid, version)
        self.problem = problem
        self.transaction_uuid = transaction_uuid
        self.version = version

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problem, self.transaction_uuid, self.version)

    def __str__(self) -> str:
        return clip(self.problem)


class StorageError(LanceError, OSError):
    """Storage failed: network, permissions, disk. May pass by itself.

    ``outcome`` says what is known about the request: ``"failed"`` (nothing was done),
    ``"unknown"`` (it may have been done, or may still be), or ``"unsynced"`` (it was done and every
    reader sees it, but the disk has not confirmed it: a power failure may undo it).
    """

    def __init__(self, path: str, problem: str, outcome: str = "failed") -> None:
        super().__init__(path, problem, outcome)
        self.path = path
        self.problem = problem
        self.outcome = outcome

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.problem, self.outcome)

    def __str__(self) -> str:
        return clip(f"cannot access {self.path!r}: {self.problem}")


class CancelledError(LanceError):
    """Long work ended early because a person asked for that."""


class SideEffectWarning(LanceError, UserWarning):  # noqa: N818
    """A change drops more than it says: indices, the primary key, or metadata of the schema.

    Issued before the version is written. With ``warnings.simplefilter("error",
    lance_nb.errors.SideEffectWarning)`` such a change is refused, and nothing is committed.
    """


class RunCancelledError(CancelledError):
    """A run was stopped before all tasks were done. Nothing was committed."""

    def __init__(self, num_done: int, num_tasks: int) -> None:
        super().__init__(num_done, num_tasks)
        self.num_done = num_done
        self.num_tasks = num_tasks

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.num_done, self.num_tasks)

    def __str__(self) -> str:
        return clip(
            f"cancelled after {self.num_done} of {self.num_tasks} tasks; nothing was committed, "
            "and files that tasks have written belong to no version (cleanup removes them)"
        )


class InternalError(LanceError):
    """Something that cannot happen did. Please report it."""
