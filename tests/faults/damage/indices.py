"""Damage files of indices of every kind and search them.

    python -m tests.faults indices 5000 [seed] [--seconds 900] [--pylance]

Each seed stands for one damage of one file: bits are flipped, numbers replaced (also by hostile
sizes), messages changed, the end cut off. Then the filters, texts or vectors that use the index are
searched. Allowed are the answers of the sound index, the same with a warning, and a LanceError. A
file without its end, or whose messages are not read, must give the right answers or an error. Of
other damage, which may only change a stored value, rows may be missing or found for it, as the
format has no checksum of its own (``checksums=True`` finds it): those runs are counted. Ends with 1
where a search takes too long, takes too much memory, finds rows that are not there, or raises
anything else. With ``--pylance`` the same searches are also made by pylance, in a process of its
own, and what comes of them is counted.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import time
import warnings
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_nb
from lance_nb.errors import LanceError
from tests.faults import command
from tests.faults.damage.mutate import mutate, truncate

JUDGE_SECONDS = 60.0
SECONDS_MAX = 8.0  # of processor time, for all searches of one damage
MEMORY_BYTES_MAX = 4 << 30  # of address space
CHUNK = 1000
ROWS, DIMENSION = 400, 8
SCALAR = {
    "n": "BTREE",
    "s": "BTREE",
    "kind": "BITMAP",
    "tags": "LABEL_LIST",
    "text": "NGRAM",
    "zone": "ZONEMAP",
    "bloom": "BLOOMFILTER",
}
FILTERS = {
    "n": ("n = 7", "n > 390 OR n < 5", "n IS NULL"),
    "s": ("s = 'name 7'", "s LIKE 'name 1%'"),
    "kind": ("kind = 'k3'", "kind <> 'k3'"),
    "tags": ("array_has_any(tags, ['t2', 't5'])", "NOT array_has(tags, 't1')"),
    "text": ("contains(text, 'bcd')",),
    "zone": ("zone BETWEEN 20 AND 24.5", "zone < 3"),
    "bloom": ("bloom = 'b17'",),
}
VECTORS = {"flat": "IVF_FLAT", "product": "IVF_PQ", "scalar": "IVF_SQ"}
FUZZY = "near"  # without the index it finds the word itself only, with a warning
Answer = list[int]
Answers = dict[str, Answer | None]


class BrokenBoundError(Exception):
    """A search took too long, or found what is not there."""


class IndexedRows:
    """A dataset with an index of every kind, written once; each damage is undone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "d.lance"
        chance, rng = random.Random(5), np.random.default_rng(5)
        texts = [" ".join(chance.choices(["abcd", "bcde", "xy", "fox"], k=4)) for _ in range(ROWS)]
        columns: dict[str, Any] = {
            "id": range(ROWS),
            "n": pa.array(rng.permutation(ROWS), mask=np.arange(ROWS) % 40 == 3),
            "s": [f"name {number}" for number in rng.permutation(ROWS)],
            "kind": [f"k{number}" for number in rng.integers(0, 9, ROWS)],
            "tags": [[f"t{one}" for one in rng.integers(0, 8, 2)] for _ in range(ROWS)],
            "text": texts,
            "words": texts,
            "zone": np.arange(ROWS) / 10,
            "bloom": [f"b{number}" for number in rng.integers(0, 50, ROWS)],
        }
        for name in VECTORS:
            values = rng.random(ROWS * DIMENSION, np.float32)
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSION)
        ds = lance_nb.write_dataset(pa.table(columns), self.path, max_rows_per_file=ROWS // 2)
        for column, kind in SCALAR.items():
            ds.create_scalar_index(column, kind)
        ds.create_scalar_index(
            "words", "INVERTED", with_position=True, stem=False, remove_stop_words=False
        )
        for column, kind in VECTORS.items():
            pieces = {"num_sub_vectors": 4, "num_bits": 4} if kind == "IVF_PQ" else {}
            ds.create_index(column, kind, num_partitions=2, **pieces)
        self.query = rng.random(DIMENSION, np.float32)
        self._columns = {one["uuid"]: one["fields"][0] for one in ds.list_indices()}
        files = [path for path in self.path.glob("_indices/*/*") if path.is_file()]
        self.files = sorted(files, key=self.name_of)
        self.sound = self.answers()

    def answers(self, column: str | None = None) -> Answers:
        """Search a column, or all; None where there was an error."""
        return answers(lance_nb, self.path, self.query, column, LanceError)

    def damaged(self, seed: int, judge: Judge | None = None) -> tuple[str, str, str]:
        """Damage a file, search, and undo it: the file, what happened, and to the judge.

        Raises BrokenBoundError, and whatever a search raises that is no LanceError.
        """
        chance = random.Random(seed)
        file = self.files[seed % len(self.files)]
        column = self._columns[file.parent.name]
        data = file.read_bytes()
        cuts = chance.random() < 0.25
        changed = data[: chance.randrange(len(data))] if cuts else _mutated(data, chance)
        file.write_bytes(changed)
        began = time.process_time()
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = self.answers(column)
            judged = "" if judge is None else judge.outcome(column)
        finally:
            file.write_bytes(data)
        spent = time.process_time() - began
        where = f"seed {seed}, {file.name}"
        if spent > SECONDS_MAX:
            raise BrokenBoundError(f"{where}: {spent:.1f} s")
        wrong = []
        for name, answer in found.items():
            expected = self.sound[name]
            if answer is not None and answer != expected:
                wrong.append(name)
                if not set(answer) <= {-1, *range(ROWS)} or len(set(answer)) < len(answer):
                    raise BrokenBoundError(f"{where}: {name!r} finds rows that are not there")
        if wrong == [FUZZY] and said:  # the scan, which the warning tells of, is right
            wrong = []
        if wrong and cuts:
            raise BrokenBoundError(f"{where}: {wrong} differ although the end of the file is gone")
        failed = any(answer is None for answer in found.values())
        outcome = (
            "changed value" if wrong else "error" if failed else "warning" if said else "right"
        )
        return self.name_of(file), outcome, judged

    def name_of(self, file: Path) -> str:
        """Return the name of a file, with the column of its index."""
        return f"{self._columns[file.parent.name]}/{file.name}"


def answers(
    engine: Any, path: Path, query: Any, column: str | None, error: type[Exception]
) -> Answers:
    """Search a column, or all, by lance_nb or by pylance; None where there was an error."""
    terms = engine if hasattr(engine, "MatchQuery") else engine.query
    searches: dict[str, dict[str, dict[str, Any]]] = {
        name: {text: {"filter": text} for text in texts} for name, texts in FILTERS.items()
    }
    searches["words"] = {
        "word": {"full_text_query": terms.MatchQuery("abcd fox", "words")},
        "best": {"full_text_query": terms.MatchQuery("abcd fox", "words"), "limit": 5},
        "phrase": {"full_text_query": terms.PhraseQuery("xy fox", "words")},
        FUZZY: {"full_text_query": terms.MatchQuery("abce", "words", fuzziness=1)},
    }
    for name in VECTORS:
        nearest = {"column": name, "q": query, "k": 5, "nprobes": 2, "refine_factor": 80}
        searches[name] = {name: {"nearest": nearest}}
    found: Answers = {}
    ds = engine.dataset(str(path))
    chosen = [one for name, one in searches.items() if column in (None, name)]
    for name, options in chain.from_iterable(one.items() for one in chosen):
        try:
            found[name] = sorted(ds.to_table(["id"], **options)["id"].to_pylist())
            if "filter" in options and ds.count_rows(name) != len(found[name] or ()):
                found[name] = [-1]
        except error:
            found[name] = None
    return found


class Judge:
    """pylance, in a process that is started again where it dies or does not answer."""

    def __init__(self, rows: IndexedRows) -> None:
        self._path, self._query = rows.path, rows.query
        self._process: Any = None
        self.sound = self._ask(None)
        assert isinstance(self.sound, dict)
        assert None not in self.sound.values()

    def outcome(self, column: str) -> str:
        """Search a column: "right", "error", "wrong", "crash" or "hang"."""
        found = self._ask(column)
        if isinstance(found, str):
            return found
        assert isinstance(self.sound, dict)
        if any(one is not None and one != self.sound[name] for name, one in found.items()):
            return "wrong"
        return "error" if None in found.values() else "right"

    def _ask(self, column: str | None) -> Answers | str:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            self._process = context.Process(
                target=_judge, args=(other, self._path, self._query), daemon=True
            )
            self._process.start()
            other.close()
            self._pipe.recv()
        self._pipe.send(column)
        outcome = "crash"
        try:
            if self._pipe.poll(JUDGE_SECONDS):
                found: Answers | str = self._pipe.recv()
                return found
            outcome = "hang"
        except (EOFError, OSError):
            pass
        self._process.kill()
        self._process.join()
        self._process = None
        return outcome


def _judge(pipe: Any, path: Path, query: Any) -> None:
    import lance

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    pipe.send("ready")
    while True:
        try:
            column = pipe.recv()
        except EOFError:
            return
        try:
            # A panic in Rust is a BaseException.
            pipe.send(answers(lance, path, query, column, Exception))
        except BaseException:  # noqa: BLE001 - counted
            pipe.send("crash")


def _mutated(data: bytes, chance: random.Random) -> bytes:
    try:
        return mutate(data, chance)
    except (IndexError, ValueError):  # a file without pages, which some ways need
        return truncate(data, chance)


def _work(run: command.Run) -> command.Counts:
    def share(seeds: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
        with command.memory_folder() as folder:
            rows = IndexedRows(Path(folder))
            judge = Judge(rows) if run.options.pylance else None
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))

            def count(seed: int) -> list[str]:
                file, outcome, judged = rows.damaged(seed, judge)
                names = [f"ends:{outcome}", *([f"pylance:{judged}"] if judged else ())]
                if outcome == "changed value":
                    print(f"seed {seed}: {file} changed an answer", flush=True)
                    names.append(f"changed:{file}")
                return names

            return command.each(seeds, tell, count, "indices 1 {}")

    return command.shared(run, share, CHUNK, None, "ends", "pylance", "changed")


def main(arguments: list[str]) -> int:
    """Damage index files as often as asked; return the exit code."""
    parser = command.parser_of("indices", "damaged index files", 5000)
    parser.add_argument("--pylance", action="store_true", help="search with pylance, too")
    return command.run("hostile_indices", parser, arguments, _work)
