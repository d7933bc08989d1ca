"""pylance cleans up between any two steps of a change: nothing is lost.

A clean-up that removes every file that no newest version names, and no tag, runs before one of the
store operations of a verb, alone or right after an append of pylance, which makes the read version
an old one. Then the verb has happened as a whole, or it ended in an error of ours and the newest
version is that of before; pylance reads it either way.

Not part of it: the check of the new files, and the two writes after it, of the ``.txn`` file and of
the manifest (see transactions/file_presence.py): what is removed in between is not noticed.

    python -m tests.faults cleaned 700 [seed] [--verb NAME] [--jobs 2]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from lance_nb.errors import LanceError
from lance_nb.storage.local import LocalStore
from tests.faults.command import NOT_REACHED
from tests.faults.disk.beside import NAMES, BesideCase
from tests.faults.disk.case import run_kind
from tests.faults.disk.looking import State, errors_of, look
from tests.faults.verbs import VERBS

PER_VERB = 6
APPEND = "append beside"
OPERATIONS = (
    "size", "exists", "read", "read_range", "read_ranges", "read_tail", "list", "list_names",
    "list_recursive", "write", "write_new", "write_unsynced", "write_if_absent", "create", "delete",
)  # fmt: skip
AFTER_THE_CHECK = ("write_unsynced", "write_if_absent", "size")  # threads ask for sizes
# They find old versions, which are gone then, or commit again after their first commit.
CLEANED = tuple(
    name
    for name in NAMES
    if VERBS[name].commits and not {"versions", "cleaned", "unfinished"} & {*VERBS[name].between}
)


class Cleaning(NamedTuple):
    """Before which operation of the store pylance cleans up, and whether it appends before."""

    number: int
    operation: str
    appends: bool


@contextmanager
def intercepted(before: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of every operation on a local store, one at a time."""
    lock = threading.RLock()

    def wrapped(name: str, operation: Any) -> Any:
        def call(store: LocalStore, *arguments: Any, **options: Any) -> Any:
            with lock:
                before(name)
            return operation(store, *arguments, **options)

        return call

    with ExitStack() as stack:
        for name in OPERATIONS:
            operation = wrapped(name, getattr(LocalStore, name))
            stack.enter_context(mock.patch.object(LocalStore, name, operation))
        yield


class CleanedCase(BesideCase):
    """A verb between whose steps pylance cleans up."""

    def rounds(self) -> Iterator[Cleaning]:
        """Yield some operations, half of them with an append before the clean-up."""
        operations: list[str] = []
        with intercepted(operations.append):
            self.verb.run(self.copied("round"))
        self.tidy()
        for appends in (False, True):
            cleanings = [
                Cleaning(number, name, appends)
                for number, name in enumerate(operations, 1)
                if name not in AFTER_THE_CHECK
            ]
            yield from self.sampled(cleanings, self._per_verb // 2)

    def round(self, fault: Cleaning) -> str:  # type: ignore[override]
        """Clean up once; return how the verb ended. Raises AssertionError."""
        assert isinstance(self.before, dict)
        states = self.orders(APPEND) if fault.appends else [self.before, self.after]
        path = self.copied("round")
        changed = path + self.verb.at
        names: list[str] = []
        is_cleaned = False

        def before(name: str) -> None:
            nonlocal is_cleaned
            names.append(name)
            if not is_cleaned and len(names) >= fault.number and name == fault.operation:
                is_cleaned = True
                if fault.appends:
                    self.judge.ask(APPEND, changed)
                self.judge.ask("clean up", changed)

        refusal: LanceError | None = None
        try:
            with intercepted(before):
                self.verb.run(path)
        except LanceError as error:
            refusal = error
        self.where = f"{fault}: {refusal!r}"
        if not is_cleaned:  # threads made the operations in another order
            self.tidy()
            return NOT_REACHED
        state = look(changed)
        unchanged, *done = map(_content, states)
        is_partial = refusal is not None and "stay merged" in str(refusal)
        expected = done if refusal is None else [unchanged]
        assert is_partial or _content(state) in expected, f"readers see {state['main']}"
        self.judge.compare(changed, state)
        problems = errors_of(changed)
        assert problems in ([], self.errors), f"verify: {problems}"
        self.tidy()
        return "done" if refusal is None else type(refusal).__name__


def _content(state: State) -> tuple[list[str], str]:
    """Return the rows of main in no order, and its columns."""
    return sorted(map(str, state["main"]["rows"])), state["main"]["schema"]


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    return run_kind("cleaned", "cleaned", arguments, CleanedCase, (700, PER_VERB), names=CLEANED)
