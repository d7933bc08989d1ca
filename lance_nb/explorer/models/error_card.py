"""An error as a card a person can act on: what happened, where, and what to do.

Layout of ``to_json``: ``title`` (what happened, in plain words), ``message`` (the error's own
text), ``where`` (path and byte, if known), ``hint`` (what to do), ``kind`` (the class, for bug
reports).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lance_nb import errors
from lance_nb.explorer.models import text

_WORDS: tuple[tuple[type[Exception], str, str], ...] = (
    (
        errors.DatasetNotFoundError,
        "No dataset here",
        (
            "Check the path: it should be the dataset's own folder, the one that holds _versions. "
            "A relative path starts at the notebook's folder."
        ),
    ),
    (
        errors.VersionNotFoundError,
        "This version does not exist",
        (
            "It may have been cleaned up, or belong to another branch. "
            "List what is there with %lance versions, or open the dataset without a version."
        ),
    ),
    (
        errors.RefNotFoundError,
        "No tag or branch of this name",
        (
            "Check the spelling; names are case-sensitive. Tags: ds.tags.list(), "
            "branches: ds.branches.list()."
        ),
    ),
    (
        errors.RefConflictError,
        "The tag or branch is in the way",
        "Nothing was changed. Look at the tag or branch as it is now, and do it again.",
    ),
    (
        errors.CommitError,
        "Somebody else changed the same data",
        "Nothing was changed. Look at what was committed meanwhile, and do it again.",
    ),
    (
        errors.ObjectNotFoundError,
        "A file of the dataset is missing",
        (
            "The version names a file that is gone: it may have been removed by a clean-up or not "
            "copied. Restore the file, or look at another version."
        ),
    ),
    (
        errors.PredicateError,
        "This expression cannot be used",
        "Expressions are SQL over the columns, for example: id > 10 AND name LIKE 'a%'.",
    ),
    (
        errors.CommitStateUnknownError,
        "The outcome of this commit is unknown",
        "Check again before you do anything else; all files were kept.",
    ),
    (
        errors.AlreadyExistsError,
        "This name is taken",
        "Choose another name, or look at what has it.",
    ),
    (
        errors.CancelledError,
        "Cancelled",
        "Start the action again when you want it.",
    ),
    (errors.CorruptFileError, "A file is damaged", ""),  # the error says what to do
    (
        errors.FormatError,
        "The bytes do not follow the Lance format",
        "Restore the file from a good copy, or look at an older version.",
    ),
    (
        errors.NotSupportedError,
        "This needs a newer lance_nb",
        (
            "The dataset uses a feature that this release does not read. Update lance_nb, "
            "or look at an older version."
        ),
    ),
    (
        errors.SchemaMismatchError,
        "This does not fit the dataset's columns",
        "Compare names and types with the dataset's columns, then do it again.",
    ),
    (
        errors.InvalidInputError,
        "This input is not valid",
        "Correct what is named above.",
    ),
    (
        errors.StorageError,
        "The storage did not answer",
        "Check the network and your credentials, then run the cell again.",
    ),
    (
        errors.NotFoundError,
        "Not found",
        "Check the name and its spelling.",
    ),
)
_OWN_FAULT = (
    "Something went wrong inside lance_nb",
    (
        "This is a fault of lance_nb, not yours. Please report it with the text above; "
        "the full trace is in the Jupyter log."
    ),
)


@dataclass(frozen=True, slots=True)
class ErrorCard:
    """What an error means for the person in front of the screen. All values are plain text."""

    title: str
    message: str
    where: str
    hint: str
    kind: str

    def to_json(self) -> dict[str, str]:
        """Return the card as JSON-able values."""
        return asdict(self)


def error_card(error: BaseException) -> ErrorCard:
    """Put an error into words; one that is not a ``LanceError`` is our own fault and says so."""
    title, hint = next(
        ((title, hint) for kind, title, hint in _WORDS if isinstance(error, kind)), _OWN_FAULT
    )
    if not isinstance(error, errors.LanceError):
        title, hint = _OWN_FAULT
    said = str(error)
    if isinstance(error, errors.CorruptFileError):
        said, hint = error.problem, text.line(f"{error.advice[:1].upper()}{error.advice[1:]}.")
    notes = " · ".join(getattr(error, "__notes__", ()))
    return ErrorCard(
        title=title,
        message=text.line(" · ".join(filter(None, (said, notes))), 1500),
        where=_where(error),
        hint=hint,
        kind=type(error).__name__,
    )


def _where(error: BaseException) -> str:
    place = getattr(error, "path", None) or getattr(error, "uri", None)
    if not isinstance(place, str):
        return ""
    offset_bytes = getattr(error, "offset_bytes", None)
    byte = f", byte {offset_bytes:,}" if isinstance(offset_bytes, int) else ""
    return text.line(f"{place}{byte}")
