"""Methods and properties of pyarrow's and pylance's classes that datasets of Lance do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from lance_nb.errors import NotSupportedError


def refused(reason: str) -> Callable[..., NoReturn]:
    """Return a method that raises NotSupportedError whatever it is called with.

    Args:
        reason: why, and what to use instead.

    Examples:
        >>> ds.sort_by("id")
        Traceback (most recent call last):
        lance_nb.errors.NotSupportedError: a dataset cannot be sorted in place; ...
    """

    def method(*_args: Any, **_options: Any) -> NoReturn:
        raise NotSupportedError(reason)

    method.__doc__ = f"Raise NotSupportedError: {reason}."
    return method


def refused_property(reason: str) -> property:
    """Return a property that raises NotSupportedError when it is read, as ``refused`` does."""
    method = refused(reason)
    return property(method, doc=method.__doc__)
