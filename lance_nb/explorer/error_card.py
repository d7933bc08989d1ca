"""An error as a card a person can act on: what happened, where, and what to do.

Layout of ``to_json``: ``title`` (what happened, in plain words), ``message`` (the error's own
text), ``where`` (path and byte, if known), ``hint`` (what to do), ``kind`` (the class, for bug
reports).
"""

from __future__ import annotations

from lance_nb import errors
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.value_classes import dataclass

_WORDS: tuple[tuple[type[Exception], str, str], ...] = (
    (
        errors.DatasetNotFoundError,
        "No dataset found",
        (
            "Check the path: it must be the folder of the dataset, which contains _versions. A "
            "relative path starts at the folder of the notebook."
        ),
    ),
    (
        errors.VersionNotFoundError,
        "This version does not exist",
        (
            "It may have been cleaned up, or it belongs to another branch. List the versions "
            "with %lance log, or open the dataset without a version."
        ),
    ),
    (
        errors.RefNotFoundError,
        "No tag or branch with this name",
        (
            "Check the spelling; names are case-sensitive. Tags: ds.tags.list(), "
            "branches: ds.branches.list()."
        ),
    ),
    (
        errors.RefConflictError,
        "A tag or branch prevents this",
        "Nothing was changed. Check the tag or branch in its current state, and try again.",
    ),
    (
        errors.CommitError,
        "Another writer changed the same data",
        "Nothing was changed. Check what was committed in the meantime, and try again.",
    ),
    (
        errors.ObjectNotFoundError,
        "A file of the dataset is missing",
        (
            "The version refers to a file that does not exist: a clean-up may have removed it, "
            "or it was not copied. Restore the file, or open another version."
        ),
    ),
    (
        errors.PredicateError,
        "This expression cannot be used",
        "Expressions are SQL on the columns, for example: id > 10 AND name LIKE 'a%'.",
    ),
    (
        errors.CommitStateUnknownError,
        "The outcome of this commit is unknown",
        "Check the outcome before you do anything else; all files were kept.",
    ),
    (
        errors.AlreadyExistsError,
        "This name is already used",
        "Choose another name, or check what uses it.",
    ),
    (
        errors.CancelledError,
        "Cancelled",
        "You can start the action again at any time.",
    ),
    (errors.CorruptFileError, "A file is damaged", ""),  # the error says what to do
    (
        errors.FormatError,
        "The bytes do not follow the Lance format",
        "Restore the file from a good copy, or open an older version.",
    ),
    (
        errors.MissingPackageError,
        "A package is not installed",
        (
            "Run the command above in a terminal, or in a cell with % before it, and restart the "
            "kernel. Nothing was changed."
        ),
    ),
    (
        errors.NotSupportedError,
        "This is not supported",
        (
            "Nothing was changed. The text above says what is missing, and what to use instead "
            "if there is something."
        ),
    ),
    (
        errors.SchemaMismatchError,
        "The data does not match the columns of the dataset",
        "Compare the names and types with the columns of the dataset, then try again.",
    ),
    (
        errors.InvalidInputError,
        "This input is not valid",
        "Correct the value named above.",
    ),
    (
        errors.StorageError,
        "The storage did not respond",
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
        "This is a bug in lance_nb. Please report it with the text above; the full traceback is "
        "in the Jupyter log."
    ),
)


@dataclass(frozen=True, slots=True)
class ErrorCard(JsonFields):
    """What an error means for the person in front of the screen. All values are plain text."""

    title: str
    message: str
    where: str
    hint: str
    kind: str


def error_card(error: BaseException) -> ErrorCard:
    """Put an error into words; one that is not a ``LanceError`` is our own fault and says so."""
    title, hint = next(
        ((title, hint) for kind, title, hint in _WORDS if isinstance(error, kind)), _OWN_FAULT
    )
    if not isinstance(error, errors.LanceError):
        title, hint = _OWN_FAULT
    message = str(error)
    if isinstance(error, errors.CorruptFileError):
        message, hint = error.problem, text.line(f"{error.advice[:1].upper()}{error.advice[1:]}.")
    notes = " · ".join(getattr(error, "__notes__", ()))
    return ErrorCard(
        title=title,
        message=text.line(" · ".join(filter(None, (message, notes))), 1500),
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
