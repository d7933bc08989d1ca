"""Full-text queries find the same rows with the same scores, here and in pylance.

Each case is a dataset with two columns of texts, indices that pylance or we built, and what
happened to it since; after every event random queries are asked of both. Where pylance is known to
answer wrongly the case is left out and says so. ``LANCE_NB_TEST_SCALE`` multiplies the queries.
"""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.indices.texts.postings import decode_posting
from lance_nb.indices.texts.stop_words import LANGUAGES, stop_words
from lance_nb.indices.texts.tokenizer import Tokenizer, parameters_of
from lance_nb.table.text_query import PhraseQuery
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]

QUERIES = int(6 * SCALE)
LANGUAGE_WORDS = ["the", "of", "running", "foxes", "naïve", "Straße", "happily"]
PLAIN = {"stem": False, "remove_stop_words": False}
Found = tuple[list[int], list[float]]


class Texts:
    """Random texts and queries over a small vocabulary."""

    def __init__(self, seed: int) -> None:
        print("seed", seed)
        self.chance = random.Random(seed)
        letters = (
            "".join(self.chance.choice("abcde") for _ in range(self.chance.randrange(1, 5)))
            for _ in range(60)
        )
        self.words = [*letters, *LANGUAGE_WORDS]

    def text(self) -> str | None:
        if self.chance.random() < 0.05:
            return None
        return " ".join(self.chance.choices(self.words, k=self.chance.choice([0, 1, 3, 8, 20])))

    def table(self, first: int, count: int) -> pa.Table:
        return pa.table(
            {
                "id": range(first, first + count),
                "t": pa.array([self.text() for _ in range(count)], pa.string()),
                "u": pa.array([self.text() for _ in range(count)], pa.string()),
                "k": [self.chance.randrange(10) for _ in range(count)],
            }
        )

    def query(self, package: Any, chance: random.Random, depth: int = 0) -> Any:
        """Make a query of the classes of a package; the same for the same state of ``chance``."""
        column, kind = chance.choice("tu"), chance.random()
        operator = package.FullTextOperator(chance.choice(["AND", "OR"]))

        def words(most: int) -> str:
            return " ".join(chance.choices(self.words, k=chance.randrange(1, most)))

        if kind < 0.15 and depth < 2:
            kinds = [chance.choice(["MUST", "SHOULD"])]
            kinds += chance.choices(["MUST", "SHOULD", "MUST_NOT"], k=chance.randrange(3))
            return package.BooleanQuery(
                [(package.Occur(one), self.query(package, chance, depth + 1)) for one in kinds]
            )
        if kind < 0.22 and depth < 2:
            positive, negative = (self.query(package, chance, depth + 1) for _ in range(2))
            boost = chance.choice([0.1, 0.5, 2.0])
            return package.BoostQuery(positive, negative, negative_boost=boost)
        if kind < 0.32:
            boosts = chance.choice([None, [1.0, 3.0]])
            return package.MultiMatchQuery(words(3), ["t", "u"], boosts=boosts, operator=operator)
        if kind < 0.5:
            # pylance finds no row for repeated words with slop, nor where it would have to try
            # another place of a word: see test_slop.
            return package.PhraseQuery(words(4), column)
        if kind < 0.65:
            return package.MatchQuery(
                words(3),
                column,
                operator=operator,
                fuzziness=chance.choice([1, 2]),
                max_expansions=chance.choice([1, 3, 50]),
                prefix_length=chance.choice([0, 1, 2]),
            )
        return package.MatchQuery(
            words(5), column, operator=operator, boost=chance.choice([1.0, 2.5])
        )


def rows(dataset: Any, query: Any, **options: Any) -> Found:
    found = dataset.to_table(columns=["id"], full_text_query=query, **options)
    assert found.schema.field("_score") == pa.field("_score", pa.float32())
    return found["id"].to_pylist(), found["_score"].to_pylist()


def assert_equal(path: Path, texts: Texts, count: int = QUERIES) -> None:
    lance = require_pylance()
    queries = importlib.import_module("lance.query")

    theirs, ours = lance.dataset(path), lance_nb.dataset(path)
    for _ in range(count):
        seed = texts.chance.randrange(1 << 30)
        options: dict[str, Any] = {}
        if texts.chance.random() < 0.3:
            wanted = texts.chance.choice(["k < 5", "id > 30", "k = 3 or id < 10"])
            options |= {"filter": wanted, "prefilter": True}
        if texts.chance.random() < 0.1:
            options["fast_search"] = True
        expected = rows(theirs, texts.query(queries, random.Random(seed)), **options)
        query = texts.query(lance_nb, random.Random(seed))
        found = rows(ours, query, **options)
        message = f"{query} {options}"
        assert dict(zip(*found, strict=True)) == pytest.approx(
            dict(zip(*expected, strict=True)), rel=1e-4, abs=2e-5
        ), message
        assert len(found[0]) == len(expected[0]), message
        assert found[1] == sorted(found[1], reverse=True), message
        limited = rows(ours, query, limit=5, **options)
        assert limited[1] == found[1][:5], message
        assert limited[0] == found[0][:5], message


@pytest.mark.parametrize("is_stable", [False, True])
@pytest.mark.parametrize("parameters", [PLAIN, {}], ids=["plain", "english"])
def test_histories(tmp_path: Path, parameters: dict[str, Any], *, is_stable: bool) -> None:
    lance = require_pylance()
    texts = Texts(11 + is_stable + 2 * bool(parameters))
    path = tmp_path / "d.lance"
    data = texts.table(0, 300)
    ds = lance.write_dataset(data, path, max_rows_per_file=120, enable_stable_row_ids=is_stable)
    assert_equal(path, texts)
    ds.create_scalar_index("t", "INVERTED", with_position=True, **parameters)
    assert_equal(path, texts)
    ds.create_scalar_index("u", "INVERTED", with_position=True, **parameters)
    assert_equal(path, texts, 3 * QUERIES)
    ds.delete("id % 7 = 3")
    assert_equal(path, texts)
    ds = lance.write_dataset(texts.table(1000, 100), path, mode="append")
    assert_equal(path, texts)
    if not is_stable:  # there pylance returns updated rows twice, with old texts
        ds.update({"t": "'ab running foxes'"}, where="id % 11 = 2")
        assert_equal(path, texts)
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    assert_equal(path, texts)
    ds.optimize.compact_files(target_rows_per_fragment=300)
    assert_equal(path, texts)
    ds = lance.write_dataset(texts.table(2000, 50), path, mode="append")
    ds.optimize.optimize_indices(num_indices_to_merge=10)
    assert_equal(path, texts)


def test_deferred_compaction(tmp_path: Path) -> None:
    """Addresses are followed through the fragment-reuse index."""
    lance = require_pylance()
    texts = Texts(21)
    path = tmp_path / "d.lance"
    ds = lance.write_dataset(texts.table(0, 300), path, max_rows_per_file=100)
    ds.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    ds.create_scalar_index("u", "INVERTED", with_position=True, **PLAIN)
    ds.delete("id % 5 = 1")
    ds.optimize.compact_files(target_rows_per_fragment=200, defer_index_remap=True)
    assert_equal(path, texts, 2 * QUERIES)


def test_stale_entries_with_stable_row_ids(tmp_path: Path) -> None:
    """A row that was updated is found by its new text only; pylance finds it by both."""
    lance = require_pylance()
    path = tmp_path / "d.lance"
    texts = pa.table({"id": range(4), "t": ["old fox", "fox", "dog", "old dog"]})
    ds = lance.write_dataset(texts, path, enable_stable_row_ids=True)
    ds.create_scalar_index("t", "INVERTED")
    ds.update({"t": "'new cat'"}, where="id = 0")
    ours = lance_nb.dataset(path)
    assert rows(ours, lance_nb.MatchQuery("old", "t"))[0] == [3]
    assert rows(ours, lance_nb.MatchQuery("cat", "t"))[0] == [0]
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    ours = lance_nb.dataset(path)
    assert rows(ours, lance_nb.MatchQuery("old", "t"))[0] == [3]
    assert rows(ours, lance_nb.MatchQuery("cat", "t"))[0] == [0]


@pytest.mark.parametrize("slop", [0, 1, 2, 3])
def test_slop(tmp_path: Path, slop: int) -> None:
    lance = require_pylance()
    queries = importlib.import_module("lance.query")

    path = tmp_path / "d.lance"
    texts = ["a x b y c", "a b c", "a x b c", "a x x b c", "a x x x b c", "b a c", "c b a"]
    ds = lance.write_dataset(pa.table({"id": range(7), "t": texts}), path)
    ds.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    expected = rows(ds, queries.PhraseQuery("a b c", "t", slop=slop))
    found = rows(lance_nb.dataset(path), lance_nb.PhraseQuery("a b c", "t", slop=slop))
    assert sorted(found[0]) == sorted(expected[0])


def test_phrases_over_many_blocks(tmp_path: Path) -> None:
    """Posting lists of several blocks, and positions in packed groups and varints."""
    lance = require_pylance()
    queries = importlib.import_module("lance.query")

    chance = random.Random(5)
    path = tmp_path / "d.lance"
    texts = [" ".join(chance.choices("abcd", k=chance.randrange(1, 30))) for _ in range(900)]
    ds = lance.write_dataset(pa.table({"id": range(900), "t": texts}), path)
    ds.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    ours = lance_nb.dataset(path)
    for phrase in ("a b", "a a", "b c d", "d c b a", "a b a b a"):
        expected = rows(ds, queries.PhraseQuery(phrase, "t"))
        found = rows(ours, lance_nb.PhraseQuery(phrase, "t"))
        assert dict(zip(*found, strict=True)) == pytest.approx(
            dict(zip(*expected, strict=True)), rel=1e-4
        )
        holding = [at for at, text in enumerate(texts) if f" {phrase} " in f" {text} "]
        assert sorted(found[0]) == holding


OPTIONS: list[dict[str, Any]] = [
    {"full_text_query": "fox"},
    {"full_text_query": '"quick fox"'},
    {"full_text_query": {"query": "fox dog", "columns": ["t", "u"]}},
    {"full_text_query": "fox", "limit": 2, "offset": 1},
    {"full_text_query": "fox", "limit": 0},
    {"full_text_query": "fox", "filter": "id > 2", "limit": 2},
    {"full_text_query": "fox", "filter": "id > 2", "limit": 2, "prefilter": True},
    {"full_text_query": "fox", "filter": "_score > 0.5"},
    {"full_text_query": "fox", "order_by": ["id"]},
    {"full_text_query": "the of", "limit": 2},
    {"full_text_query": "", "limit": 2},
    {"full_text_query": "fox", "with_row_id": True, "with_row_address": True},
    {"full_text_query": "fox", "columns": {"x": "id + 1", "s": "_score"}},
    {"full_text_query": "fox", "columns": ["_score", "id"]},
    {"full_text_query": "fox", "disable_scoring_autoprojection": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(tmp_path: Path, options: dict[str, Any]) -> None:
    lance = require_pylance()
    path = tmp_path / "d.lance"
    texts = ["quick fox", "fox fox fox fox", "a dog", "fox and a lazy dog", "quick brown fox", None]
    data = pa.table({"id": range(6), "t": texts, "u": ["fox", "dog", None, "", "cat dog", "x"]})
    ds = lance.write_dataset(data, path)
    ds.create_scalar_index("t", "INVERTED", with_position=True)
    found, expected = lance_nb.dataset(path).to_table(**options), ds.to_table(**options)
    assert found.schema == expected.schema
    for name in {"_score", "s"} & set(found.schema.names):
        assert found[name].to_pylist() == pytest.approx(expected[name].to_pylist())
        found, expected = (one.drop_columns(name) for one in (found, expected))
    assert sorted(found.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)


TOKENIZERS: list[dict[str, Any]] = [
    {},
    PLAIN | {"ascii_folding": False},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "whitespace", "lower_case": False, "stem": False},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "ngram"},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 4, "prefix_only": True},
    {"language": "French"},
    {"language": "German", "ascii_folding": False},
    {"language": "Turkish"},
    {"custom_stop_words": ["fox", "running"]},
    {"max_token_length": 5},
    {"max_token_length": None},
]


@pytest.mark.parametrize("parameters", TOKENIZERS, ids=str)
def test_tokens_are_those_of_pylance(tmp_path: Path, parameters: dict[str, Any]) -> None:
    """The words of an index that pylance built over texts of many scripts, document by document."""
    lance = require_pylance()
    chance = random.Random(3)
    letters = "abcde AB  .,-_'\"\t\n123é ßÆñœ İıŁΟΔΣς日本กำहिन्दी́ aeiou the of\u0301\u00a0\u000b"
    words = [
        "the",
        "running",
        "Foxes",
        "are",
        "jumping",
        "happily",
        "über",
        "straße",
        "don't",
        "naïve",
        "日本語",
        "テスト",
        "x_y",
        "foo.bar",
        "हिन्दी",
        "ภาษาไทย",
        "ΟΔΟΣ",
        "İstanbul",
        "éx",
        "L'été",
        "Ⓐⓑ",
        "Ⅷ",
        "½x",
        "ǼØ",
        "ﬁre",
    ]
    texts: list[str | None] = ["".join(chance.choices(letters, k=40)) for _ in range(40)]
    texts += [" ".join(chance.choices(words, k=6)) for _ in range(40)]
    texts += ["y" * size for size in range(37, 43)] + ["", " ", None]
    path = tmp_path / "d.lance"
    ds = lance.write_dataset(pa.table({"t": texts}), path)
    ds.create_scalar_index("t", "INVERTED", **parameters)
    assert tokens_of(path) == our_tokens(texts, parameters)


def test_languages(tmp_path: Path) -> None:
    """Every stop word of every language is dropped, and a sample of others is stemmed alike."""
    lance = require_pylance()
    every = sorted(set().union(*map(stop_words, LANGUAGES)))
    chance = random.Random(4)
    texts: list[str | None] = [*chance.sample(every, 60)]
    for number, language in enumerate(chance.sample(LANGUAGES, 5)):
        path = tmp_path / f"{number}.lance"
        mine = [*texts, *sorted(stop_words(language))]
        ds = lance.write_dataset(pa.table({"t": mine}), path)
        ds.create_scalar_index("t", "INVERTED", language=language)
        assert tokens_of(path) == our_tokens(mine, {"language": language}), language


def our_tokens(texts: list[str | None], parameters: dict[str, Any]) -> dict[int, set[str]]:
    tokenizer = Tokenizer(parameters_of(parameters))
    cut = tokenizer.cut(pa.array(texts, pa.string()))
    names = list(tokenizer.words)
    found: dict[int, set[str]] = {}
    for text, word in zip(cut.texts.tolist(), cut.words.tolist(), strict=True):
        found.setdefault(text, set()).add(names[word])
    return found


def tokens_of(path: Path) -> dict[int, set[str]]:
    """Read the tokens of each row from the files of the index."""
    from lance_nb.indices.texts.search import text_search

    search = text_search(lance_nb.dataset(path).scanner()._snapshot)
    found: dict[int, set[str]] = {}
    for part in search.parts(search.indices["t"]):
        partition = part.partition
        (lists,) = partition._postings.read_all("_posting")
        for token, number in partition.tokens.items():
            blocks, length = lists[number].values, partition.length(number)
            posting = decode_posting(blocks, length, partition.num_documents, "")
            for document in posting.documents.tolist():
                found.setdefault(int(part.rows[document]), set()).add(token.decode())
    return found


def test_folding_is_that_of_pylance(tmp_path: Path) -> None:
    """Letters of Latin and other scripts alone, and between two letters."""
    lance = require_pylance()
    codes = [
        *range(0x80, 0x250),
        *range(0x300, 0x530),
        *range(0x1E00, 0x1F00),
        *range(0x900, 0x980),
    ]
    texts: list[str | None] = [chr(code) for code in codes]
    texts += [f"a{chr(code)}b" for code in codes]
    for number, base in enumerate(("simple", "whitespace")):
        path = tmp_path / f"{number}.lance"
        ds = lance.write_dataset(pa.table({"t": texts}), path)
        parameters = PLAIN | {"base_tokenizer": base}
        ds.create_scalar_index("t", "INVERTED", **parameters)
        assert tokens_of(path) == our_tokens(texts, parameters), base


def test_equal_scores(tmp_path: Path) -> None:
    """Rows that share a score come by address, whatever the limit."""
    lance = require_pylance()
    path = tmp_path / "d.lance"
    words = np.array(["fox", "dog", "cat"])[np.arange(700) % 3]
    ds = lance.write_dataset(pa.table({"id": range(700), "t": words}), path, max_rows_per_file=90)
    ds.create_scalar_index("t", "INVERTED")
    ours = lance_nb.dataset(path)
    assert rows(ours, "fox", limit=5)[0] == [0, 3, 6, 9, 12]
    assert rows(ours, "fox")[0] == list(range(0, 700, 3))


@pytest.mark.parametrize("engine", ["pylance", "ours"])
@pytest.mark.parametrize("longest", [3, 4])
def test_phrases_of_pieces_of_characters(tmp_path: Path, engine: str, longest: int) -> None:
    """With the tokenizer "ngram" all pieces have position 0, also one that a text has twice."""
    lance = require_pylance()
    from lance.query import PhraseQuery as TheirPhrase

    texts = ["aaaa aaaa", "banana banana", "papaya", "mississippi issi", "a panama ban", "nab ana"]
    path = str(tmp_path / "d.lance")
    theirs = lance.write_dataset(pa.table({"id": range(len(texts)), "t": texts}), path)
    maker = theirs if engine == "pylance" else lance_nb.dataset(path)
    maker.create_scalar_index(
        "t", "INVERTED", base_tokenizer="ngram", with_position=True, min_ngram_length=3,
        max_ngram_length=longest,
    )  # fmt: skip
    theirs = lance.dataset(path)
    theirs.insert(pa.table({"id": [10, 11], "t": ["banana zzz", "zana"]}))
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    for text in ("anana", "issi", "aaa ana", "ana n", "papaz", "nab", "zzz", "qqq", "an"):
        asked = ours.to_table(full_text_query=PhraseQuery(text, "t"))
        expected = theirs.to_table(full_text_query=TheirPhrase(text, "t"))
        found, wanted = (
            {row["id"]: row["_score"] for row in one.to_pylist()} for one in (asked, expected)
        )
        assert found == pytest.approx(wanted), text
