from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.scanner import LanceScanner
from lance_nb.dataset.scanner_builder import SCAN_ARGUMENTS, ScannerBuilder
from lance_nb.errors import InvalidInputError, NotSupportedError


@pytest.fixture
def builder(at: Callable[..., LanceDataset]) -> ScannerBuilder:
    return ScannerBuilder(at(3))


def test_options_are_collected_and_checked_when_the_scan_is_made(builder: ScannerBuilder) -> None:
    scanner = builder.columns(["id"]).filter("id < 9").limit(4).with_row_id().to_scanner()

    assert scanner.projected_schema.names == ["id", "_rowid"]
    assert scanner.to_table()["id"].to_pylist() == [0, 1, 2, 3]


def test_several_options_at_once(builder: ScannerBuilder) -> None:
    builder.apply_defaults({"limit": 2, "with_row_address": True, "columns": ["id"]})

    assert builder.to_scanner().to_table().num_columns == 2
    with pytest.raises(InvalidInputError, match="Unknown option nope"):
        builder.apply_defaults({"nope": 1})


def test_what_needs_an_index_is_refused_when_the_scan_is_made(builder: ScannerBuilder) -> None:
    with pytest.raises(InvalidInputError, match="full-text search of a text needs an INVERTED"):
        builder.full_text_search("word").to_scanner()
    with pytest.raises(NotSupportedError, match="index_segments"):
        builder.with_index_segments(["0"]).to_scanner()


def test_other_names_are_attribute_errors(builder: ScannerBuilder) -> None:
    with pytest.raises(AttributeError, match="no_such_option"):
        _ = builder.no_such_option
    assert "limit" in dir(builder)


def test_the_arguments_of_every_scan_are_those_of_the_scanner() -> None:
    scanner = inspect.signature(LanceDataset.scanner).parameters.keys() - {"self"}
    frame = inspect.signature(LanceDataset.to_pandas).parameters.keys() - {"self"}

    assert set(SCAN_ARGUMENTS) == scanner
    assert frame - scanner == inspect.signature(LanceScanner.to_pandas).parameters.keys() - {"self"}
