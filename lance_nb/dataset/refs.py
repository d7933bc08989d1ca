"""The tags and branches of a dataset, as pylance shows them."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from lance_nb.storage.base import Store
from lance_nb.table import refs

if TYPE_CHECKING:
    from lance_nb.format.refs import Branch, Tag


class Tags:
    """Tags: names for versions."""

    def __init__(self, root: Store) -> None:
        self._root = root

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe every tag by name."""
        return {name: _tag(tag) for name, tag in refs.list_tags(self._root).items()}

    def names(self) -> builtins.list[str]:
        """List the names only; reads no tag."""
        return refs.tag_names(self._root)

    def get_version(self, name: str) -> int:
        """Return the version a tag points at. Raises RefNotFoundError."""
        return refs.read_tag(self._root, name).version


class Branches:
    """Branches: lines of history that started from some version of another one."""

    def __init__(self, root: Store) -> None:
        self._root = root

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe every branch by name; main has no entry."""
        found = refs.list_branches(self._root)
        return {name: _branch(branch) for name, branch in found.items()}

    def names(self) -> builtins.list[str]:
        """List the names only; reads no branch."""
        return refs.branch_names(self._root)


def _tag(tag: Tag) -> dict[str, Any]:
    return {
        "branch": tag.branch,
        "version": tag.version,
        "created_at": tag.created_at,
        "updated_at": tag.updated_at,
        "manifest_size": tag.manifest_size_bytes,
        "metadata": dict(tag.metadata),
    }


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "parent_branch": branch.parent_branch,
        "branch_identifier": list(branch.identifier),
        "parent_version": branch.parent_version,
        "create_at": branch.create_at,
        "manifest_size": branch.manifest_size_bytes,
        "metadata": dict(branch.metadata),
    }
