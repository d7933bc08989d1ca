"""MagicContext: the current dataset, the edits staged on it, and display settings.

The magic and the command line each have one, and every verb gets it. Names are looked up in the
variables of the notebook, so that ``%lance stage append df`` finds ``df``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer import version_refs as refs
from lance_nb.magic.verb import MAGIC
from lance_nb.value_classes import dataclass

# Loaded when an edit is staged: most lines of a terminal stage none.
if TYPE_CHECKING:
    from lance_nb.explorer.stage.card import Card
    from lance_nb.explorer.stage.staging_area import StagingArea


def label(dataset: LanceDataset) -> str:
    """Name a dataset and its version: ``photos main:12``."""
    return f"{text.name(dataset.name)} {text.name(dataset.branch or 'main')}:{dataset.version}"


@dataclass(frozen=True, slots=True)
class Settings:
    """How many versions and rows are shown by default."""

    versions_shown: int = 20
    rows_shown: int = 20


class MagicContext:
    """The state that verbs share: current dataset, staged edits, settings."""

    def __init__(
        self,
        *,
        namespace: MutableMapping[str, Any] | None = None,
        show: Callable[[LanceDataset], object] = label,
        prog: str = MAGIC,
        ask: Callable[[str], bool] | None = None,
    ) -> None:
        """Set up the context of a notebook or a terminal.

        ``namespace`` are the variables of the notebook, ``show`` shows a dataset as an explorer or
        as text, ``prog`` is the command to suggest in messages, and ``ask`` asks a question in an
        interactive terminal (None elsewhere).
        """
        self.settings = Settings()
        self.namespace = {} if namespace is None else namespace
        self.show = show
        self.prog = prog
        self.ask = ask
        self._dataset: LanceDataset | None = None
        self._variable: str | None = None
        self._mine: set[str] = set()  # ids of the edits staged by this context

    @property
    def dataset(self) -> LanceDataset:
        """The current dataset. Raises InvalidInputError if none is open."""
        if self._dataset is None:
            raise InvalidInputError("no dataset is open; use %lance open URI")
        return self._dataset

    @property
    def is_open(self) -> bool:
        """Whether a dataset is open."""
        return self._dataset is not None

    def open(self, uri: str, variable: str | None = None) -> LanceDataset:
        """Open a dataset and make it the current one; ``uri`` may be a variable with a dataset."""
        existing = self.namespace.get(uri) if uri.isidentifier() else None
        dataset = existing if isinstance(existing, LanceDataset) else _opened(uri)
        self._check_no_staged_edits("open another dataset")
        self._variable = variable
        self.set_dataset(dataset)
        if self.prog == MAGIC:  # a terminal stages nothing
            self.staging_area.drop_foreign_cards(dataset)
        return dataset

    def set_dataset(self, dataset: LanceDataset) -> LanceDataset:
        """Make a version the current one, and assign it to the bound variable."""
        self._dataset = dataset
        if self._variable is not None:
            self.namespace[self._variable] = dataset
        return dataset

    def resolve(self, ref: str | None) -> LanceDataset:
        """Open the version of a ref, by default the current one."""
        if ref is None:
            return self.dataset
        resolved = self.dataset.checkout_version(ref)
        if not isinstance(resolved, LanceDataset):
            raise InvalidInputError(f"{ref!r} is not a version of a dataset")
        return resolved

    def checkout_latest(self) -> LanceDataset:
        """Go to the newest version of the current branch, as every change does."""
        return self.set_dataset(self.dataset.checkout_version((self.dataset.branch, None)))

    # --- staging ----------------------------------------------------------------------------------

    @property
    def staging_area(self) -> StagingArea:
        """The edits staged on the current dataset, by this context and by its explorers."""
        from lance_nb.explorer.stage.staging_area import staging_area_of

        return staging_area_of(self.dataset)

    def stage(self, verb: str, **args: Any) -> Card:
        """Stage one more edit on the newest version of the branch. Raises LanceError.

        An edit that cannot be in one transaction with the others is refused.
        """
        from lance_nb.explorer.stage.card import ProgressReporter
        from lance_nb.explorer.stage.edit_forms import EditForm

        form, area = EditForm.of(verb, args), self.staging_area
        card = area.add(self.checkout_latest(), form, self.namespace, ProgressReporter("stage"))
        why = area.why_not_together() if len(area.open_cards) > 1 else ""
        if why:
            area.remove(card.id)
            raise InvalidInputError(why)
        self._mine.add(card.id)
        return card

    def _check_no_staged_edits(self, action: str) -> None:
        if self._mine and any(
            open_card.id in self._mine for open_card in self.staging_area.open_cards
        ):
            raise InvalidInputError(
                f"edits are staged: before you {action}, use %lance commit or %lance discard"
            )


def _opened(uri: str) -> LanceDataset:
    source = refs.open_source(uri)
    if not isinstance(source, LanceDataset):
        raise InvalidInputError(f"{uri!r} is not a dataset")
    return source


def variables_of(namespace: Mapping[str, Any]) -> dict[str, LanceDataset]:
    """Return the variables that hold datasets."""
    return {
        name: value
        for name, value in namespace.items()
        if isinstance(value, LanceDataset) and not name.startswith("_")
    }


def version_ref(dataset: LanceDataset) -> tuple[str | None, int]:
    """Return branch and version, the argument of ``checkout_version``."""
    return dataset.branch, dataset.version
