"""The desk: the dataset in hand, the edits staged on it, and how much is shown.

Both doors have one; every verb gets it. Names are looked up in the notebook's variables, so that
``%lance stage append df`` finds ``df``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import refs, text
from lance_nb.explorer.staging.card import Card
from lance_nb.explorer.staging.edit_forms import EditForm
from lance_nb.explorer.staging.progress import ProgressReporter
from lance_nb.explorer.staging.row_sources import open_dataset
from lance_nb.explorer.staging.staging_area import StagingArea, staging_area_of


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
    # How the verbs are called where this desk stands, for advice: "%lance" or "lance-nb".
    prog: str = "%lance"
    # Asks somebody who sits at a terminal; None where nobody can answer.
    ask: Callable[[str], bool] | None = None
    _dataset: LanceDataset | None = None
    _variable: str | None = None
    _mine: set[str] = field(default_factory=set)  # cards that this desk has staged

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
        dataset = found if isinstance(found, LanceDataset) else open_dataset(uri)
        self._check_nothing_staged("open another dataset")
        self._variable = variable
        staging_area_of(dataset).forget_strangers(dataset)
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
    def deck(self) -> StagingArea:
        """What is staged on the dataset in hand, here and in explorers of it."""
        return staging_area_of(self.dataset)

    def stage(self, verb: str, **args: Any) -> Card:
        """Stage one more change, on the newest version of the branch. Raises LanceError.

        What one transaction could not say beside the other changes is refused.
        """
        form, deck = EditForm.of(verb, args), self.deck
        card = deck.add(self.latest(), form, self.namespace, ProgressReporter("stage"))
        why = deck.why_not_together() if len(deck.open_cards) > 1 else ""
        if why:
            deck.remove(card.id)
            raise InvalidInputError(why)
        self._mine.add(card.id)
        return card

    def _check_nothing_staged(self, form: str) -> None:
        if self._dataset is not None and any(one.id in self._mine for one in self.deck.open_cards):
            raise InvalidInputError(
                f"edits are staged: before you {form}, %lance commit or %lance discard them"
            )


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
