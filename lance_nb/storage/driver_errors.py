"""Errors of fsspec drivers as errors of ours, without the secrets that they may tell.

Drivers raise errors of their own HTTP libraries, which have no common base class.

Limits: mistakes of our own (TypeError, KeyError...) pass through, so that they are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from lance_nb.errors import (
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.storage.exclusive.base import ExclusiveCreate, Outcome

_OUR_MISTAKES = (TypeError, AttributeError, NameError, KeyError, IndexError)


class DriverErrors:
    """Turns whatever a driver raises inside the block into one of our errors.

    With a strategy, errors are judged as those of an exclusive creation. With ``changes``, what is
    not certain to have been refused has an unknown outcome: the server may have done it.
    """

    def __init__(
        self,
        path: str,
        secrets: Sequence[str],
        strategy: ExclusiveCreate | None = None,
        *,
        changes: Callable[[BaseException], Outcome] | None = None,
    ) -> None:
        self._path = path
        self._secrets = secrets
        self._strategy = strategy
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
        said = str(error)
        text = type(error).__name__ if said in ("", "None") else said
        masked = text
        for secret in self._secrets:
            masked = masked.replace(secret, "***")
        # A cause that tells a secret would be printed with the traceback.
        cause = error if masked == text else None
        if self._strategy is not None:
            outcome = self._strategy.outcome(error)
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
