"""Damage one file of a dataset many times, and ask for its health each time; a program of its own,
so that a crash, a hang or eaten memory shows.

    python -m tests.hostile.datasets FIRST_SEED COUNT [stable | plain]

Each seed stands for one damage: a field of a manifest, an index section, a transaction or a record,
bits of any file, a cut, a file in another's place, a file that is gone. Then ``verify``, ``space``,
``history`` and ``doctor`` are called. Ends with 1 and the tracebacks if one of them raises, takes
too long, or takes too much memory.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from google.protobuf.message import DecodeError

import lance_nb
from lance_nb._pb import table, transaction
from lance_nb.errors import LanceError
from lance_nb.magic.command_line import main as command_line
from tests.hostile.mutate import change, flip_bits, overwrite, truncate
from tests.support.damages import (
    NEWEST,
    Damaged,
    Files,
    build,
    fragments_of,
    put_fragments,
    worlds,
)

SECONDS_MAX = 20.0  # of processor time; 0.2 on a quiet machine
MEMORY_BYTES_MAX = 256 << 20  # above what the undamaged dataset takes
ADDRESSES_BYTES_MAX = 3 << 30


class TooSlow(BaseException):
    """A call did not end in time; no handler for ordinary errors may swallow this."""


class World:
    """An undamaged dataset, and the ways to damage it."""

    def __init__(self, uri: str, *, stable: bool) -> None:
        self.place: Damaged = build(uri, stable_row_ids=stable)
        self.files: Files = self.place.take()

    def damage(self, rng: random.Random) -> str:
        """Damage one file; return what was done."""
        self.place.put(self.files)
        ways: list[Callable[[random.Random], str]] = [
            self._manifest, self._manifest, self._fragment, self._fragment, self._index_section,
            self._transaction, self._record, self._bytes, self._bytes, self._gone, self._swapped,
        ]  # fmt: skip
        done = rng.choice(ways)(rng)
        if rng.random() < 0.2:
            done += f"; {rng.choice(ways)(rng)}"
        return done

    def _version(self, rng: random.Random) -> int:
        return rng.choice((NEWEST, NEWEST, rng.randint(1, NEWEST)))

    def _edit(self, rng: random.Random, what: str, edit: Callable[[Any, Any], object]) -> str:
        version = self._version(rng)
        with contextlib.suppress(LanceError, DecodeError, ValueError):  # damaged already
            self.place.edit(edit, version)
        return f"{what} of version {version}"

    def _manifest(self, rng: random.Random) -> str:
        return self._edit(rng, "manifest", lambda message, _: change(message, rng))

    def _fragment(self, rng: random.Random) -> str:
        def edit(message: table.Manifest, _: table.IndexSection) -> None:
            fragments = fragments_of(message)
            for _ in range(rng.choice((1, 1, 3))):
                if fragments:
                    change(rng.choice(fragments), rng)
            if rng.random() < 0.1:
                fragments.append(rng.choice(fragments))
            put_fragments(message, fragments)

        return self._edit(rng, "fragment", edit)

    def _index_section(self, rng: random.Random) -> str:
        return self._edit(rng, "index section", lambda _, section: change(section, rng))

    def _transaction(self, rng: random.Random) -> str:
        def edit(data: bytes) -> bytes:
            message = transaction.Transaction.FromString(data)
            change(message, rng)
            return bytes(message.SerializeToString())

        if rng.random() < 0.5:
            version = self._version(rng)
            with contextlib.suppress(LanceError, DecodeError):
                self.place.edit(lambda *_: None, version, inline=edit)
            return f"inline transaction of version {version}"
        path = rng.choice(self.place.names("_transactions"))
        self.place.root.write(path, edit(self.files[path]))
        return path

    def _record(self, rng: random.Random) -> str:
        path = rng.choice([one for one in self.files if one.endswith(".json")])
        record = json.loads(self.files[path])
        key = rng.choice(list(record))
        values = (None, -1, 0, 2**63, 2**64, 1.5, "x", "../x", "\0", [], {}, True, "é" * 9, 1e400)
        record[key] = rng.choice(values)
        self.place.root.write(path, json.dumps(record).encode())
        return f"{key} of {path}"

    def _bytes(self, rng: random.Random) -> str:
        path = rng.choice(sorted(self.files))
        data = rng.choice((flip_bits, flip_bits, truncate, overwrite))(self.files[path], rng)
        self.place.root.write(path, data)
        return f"bytes of {path}"

    def _gone(self, rng: random.Random) -> str:
        path = rng.choice(sorted(self.files))
        self.place.root.delete(path)
        return f"{path} was deleted"

    def _swapped(self, rng: random.Random) -> str:
        path, other = rng.sample(sorted(self.files), 2)
        self.place.root.write(path, self.files[other])
        return f"{path} is {other}"

    def health(self) -> str:
        """Call the four verbs; return how it went."""
        found = lance_nb.verify(self.place.uri)
        repr(found), found.to_table()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = command_line(["doctor", self.place.uri])
        if status != (0 if found.ok else 1):
            raise ValueError(f"the doctor ends with {status}: {found.verdict}")
        if found.opened_version is None:
            return "nothing opens"
        dataset = lance_nb.dataset(self.place.uri, version=found.opened_version)
        if len(dataset.history()) != len(dataset.version_numbers()):
            raise ValueError("versions are missing in the history")
        repr(dataset.space())
        return "whole" if not found.findings else "found" if found.ok else "damaged"


def _stop(signum: int, frame: FrameType | None) -> None:
    raise TooSlow


def main(first: int, count: int, kind: str = "") -> int:
    """Damage the datasets with ``count`` seeds; return the exit code."""
    faulthandler.enable()
    places = {name: uri for (_, uri), name in zip(worlds(), ("plain", "stable"), strict=True)}
    made = {
        name: World(uri.replace("damages", "hostile"), stable=name == "stable")
        for name, uri in places.items()
        if kind in ("", name)
    }
    for world in made.values():
        if world.health() != "whole":
            raise ValueError("the dataset is not whole to begin with")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES_MAX, ADDRESSES_BYTES_MAX))
    signal.signal(signal.SIGPROF, _stop)
    return 1 if sum(_run(name, world, first, count) for name, world in made.items()) else 0


def _run(name: str, world: World, first: int, count: int) -> int:
    """Run the seeds on one dataset; return how many findings there were."""
    outcomes: Counter[str] = Counter()
    longest, bad = 0.0, 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(first, first + count):
        start = time.process_time()
        done = world.damage(random.Random(seed))
        signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
        try:
            outcomes[world.health()] += 1
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most
            most += grown
            if grown * 1024 > MEMORY_BYTES_MAX:
                raise MemoryError(f"{grown / 1024:.0f} MB more")
        except (Exception, TooSlow):  # noqa: BLE001 (whatever it is, it is a finding)
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(f"FOUND seed {seed} of {name}: {done}", flush=True)
            traceback.print_exc()
            bad += 1
            if bad == 20:
                break
        signal.setitimer(signal.ITIMER_PROF, 0)
        longest = max(longest, time.process_time() - start)
    print(
        f"{name}: seeds {first}..{first + count - 1}: {dict(outcomes)}, longest {longest:.2f} s",
        flush=True,
    )
    return bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
