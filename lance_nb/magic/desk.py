"""The desk: the dataset in hand, the edits staged on it, and how much is shown.

Both doors have one; every verb gets it. Names are looked up in the notebook's variables, so that
``%lance stage append df`` finds ``df``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.opening import open_source
from lance_nb.magic.table_files import READERS, read_file

if TYPE_CHECKING:
    from lance_nb.dataset.verbs.staging import Stage


def label(dataset: LanceDataset) -> str:
    """Name a dataset and the version in hand: ``photos main:12``."""
    return f"{text.name(dataset.name)} {text.name(dataset.branch or 'main')}:{dataset.version}"


@dataclass(slots=True)
class Settings:
    """How much is shown when a verb is not told."""

    versions_shown: int = 20
    rows_shown: int = 20


@dataclass(slots=True)
class Desk:
    """What the verbs work on."""

    settings: Settings = field(default_factory=Settings)
    # The notebook's variables; a terminal has none.
    namespace: MutableMapping[str, Any] = field(default_factory=dict)
    # How a dataset is shown: as an explorer, or in words.
    show: Callable[[LanceDataset], object] = label
    _dataset: LanceDataset | None = None
    _variable: str | None = None
    _stage: Stage | None = None

    @property
    def dataset(self) -> LanceDataset:
        """The dataset in hand. Raises InvalidInputError when none is open."""
        if self._dataset is None:
            raise InvalidInputError("no dataset is open; begin with %lance open URI")
        return self._dataset

    @property
    def is_open(self) -> bool:
        """Whether there is a dataset in hand."""
        return self._dataset is not None

    def open(self, uri: str, variable: str | None = None) -> LanceDataset:
        """Take another dataset in hand; ``uri`` may be a variable that holds one."""
        found = self.namespace.get(uri) if uri.isidentifier() else None
        dataset = found if isinstance(found, LanceDataset) else _opened(uri)
        self._check_nothing_staged("open another dataset")
        self._variable = variable
        self._stage = None
        return self.hold(dataset)

    def hold(self, dataset: LanceDataset) -> LanceDataset:
        """Go on with another version of the dataset; the variable follows."""
        self._dataset = dataset
        if self._variable is not None:
            self.namespace[self._variable] = dataset
        return dataset

    def at(self, ref: str | None) -> LanceDataset:
        """Open a ref beside the version in hand; without one, the version in hand."""
        if ref is None:
            return self.dataset
        found = refs.resolve(self.dataset, ref)
        if not isinstance(found, LanceDataset):
            raise InvalidInputError(f"{ref!r} is not a version of a dataset")
        return found

    def latest(self) -> LanceDataset:
        """Move to the newest version of the branch in hand, as every change does."""
        return self.hold(self.dataset.checkout_version((self.dataset.branch, None)))

    # --- the stage --------------------------------------------------------------------------------

    @property
    def stage(self) -> Stage:
        """The stage, made when it is first asked for, on the newest version of the branch."""
        if self._stage is None:
            self._stage = self.latest().stage()
        return self._stage

    @property
    def staged(self) -> Stage | None:
        """The stage if there is one."""
        return self._stage

    def clear_stage(self) -> None:
        """Forget the stage: it was committed or discarded."""
        self._stage = None

    def _check_nothing_staged(self, wish: str) -> None:
        if self._stage is not None:
            raise InvalidInputError(
                f"edits are staged: %lance commit or %lance discard them before you {wish}"
            )

    # --- data -------------------------------------------------------------------------------------

    def data(self, name: str) -> Any:
        """Find data by the name of a variable or of a file (Parquet, CSV, JSON, Arrow, Lance)."""
        if name in self.namespace:
            return self.namespace[name]
        path = Path(name)
        if path.suffix in READERS:
            return read_file(path)
        if path.suffix == ".lance" or "://" in name:
            return _opened(name)
        raise InvalidInputError(
            f"{name!r} is neither a variable nor a file that can be read "
            f"({', '.join([*READERS, '.lance'])})"
        )


def _opened(uri: str) -> LanceDataset:
    found = open_source(uri)
    if not isinstance(found, LanceDataset):
        raise InvalidInputError(f"{uri!r} is not a dataset")
    return found


def variables_of(namespace: Mapping[str, Any]) -> dict[str, LanceDataset]:
    """List the variables that hold datasets."""
    return {
        name: value
        for name, value in namespace.items()
        if isinstance(value, LanceDataset) and not name.startswith("_")
    }


def place_of(dataset: LanceDataset) -> tuple[str | None, int]:
    """Return the branch and version in hand, as ``checkout_version`` takes them."""
    return dataset.branch, dataset.version
