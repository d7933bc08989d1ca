"""Translate errors of storage drivers into errors of lance_nb, with secrets masked.

Drivers raise the errors of their HTTP libraries, which have no common base class. Programming
errors (TypeError, KeyError...) pass through unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from lance_nb.errors import LanceError, ObjectExistsError, ObjectNotFoundError, StorageError
from lance_nb.shown_text import without_url_secrets
from lance_nb.storage.conditional_put import Judge, Outcome, causes

_OUR_MISTAKES = (TypeError, AttributeError, NameError, KeyError, IndexError)


class DriverErrors:
    """Turns whatever a driver raises inside the block into one of our errors.

    With ``conditional_put``, errors are judged as those of an exclusive creation. With ``changes``,
    what is not certain to have been refused has an unknown outcome: the server may have done it.
    """

    def __init__(
        self,
        path: str,
        secrets: Sequence[str],
        conditional_put: Judge | None = None,
        *,
        changes: Callable[[BaseException], Outcome] | None = None,
    ) -> None:
        self._path = path
        self._secrets = secrets
        self._conditional_put = conditional_put
        self._changes = changes
        self.busy = False

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, (LanceError, *_OUR_MISTAKES)):
            return
        masked, cause = self._text_and_cause(error)
        if self._conditional_put is not None:
            outcome = self._conditional_put.outcome(error)
            self.busy = outcome is Outcome.BUSY
            if outcome is Outcome.EXISTS:
                raise ObjectExistsError(self._path) from cause
            shown = "failed" if outcome is Outcome.FAILED else "unknown"
            raise StorageError(self._path, masked, shown) from cause
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise ObjectNotFoundError(self._path) from cause
        unclear = (Outcome.UNKNOWN, Outcome.BUSY)
        is_unknown = self._changes is not None and self._changes(error) in unclear
        raise StorageError(self._path, masked, "unknown" if is_unknown else "failed") from cause

    def _text_and_cause(self, error: Exception) -> tuple[str, BaseException | None]:
        """Return the text to show, and the cause; None for one that would print a secret."""
        message = str(error)
        text = type(error).__name__ if message in ("", "None") else message
        chain = " ".join(f"{cause} {cause!r}" for cause in causes(error))
        return self._masked(text), error if self._masked(chain) == chain else None

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return without_url_secrets(text)
