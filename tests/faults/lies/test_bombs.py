"""Small files that stand for very many rows: a preview costs what it shows, and no more."""

from __future__ import annotations

import numpy as np
import pytest

import lance_nb
from lance_nb._pb import encodings, encodings21
from lance_nb._pb import table as pb
from tests.faults.damage.mutate import column_messages, with_column_messages
from tests.faults.lies.reading import bounded, manifest_path, refused
from tests.golden.big import VERSION, repeat_pages
from tests.golden.copies import copy_to_folder, edited_fragment, edited_manifest

pytestmark = pytest.mark.slow

ROWS = 10**8
SEVEN = np.int64(7).tobytes()


def constant_page(page, num_rows: int) -> None:
    """Make a page of ``num_rows`` times the number 7."""
    layout = encodings21.PageLayout()
    layout.constant_layout.layers.append(encodings21.REPDEF_ALL_VALID_ITEM)
    layout.constant_layout.inline_value = SEVEN
    wrapped = encodings.Any.FromString(page.encoding.direct.encoding)
    wrapped.value = layout.SerializeToString()
    page.encoding.direct.encoding = wrapped.SerializeToString()
    page.length = num_rows
    page.ClearField("buffer_offsets")
    page.ClearField("buffer_sizes")


def grow(root, version, num_rows, edit_page) -> None:
    """Let a version's only fragment have ``num_rows``; ``edit_page`` is called for every page."""
    path = manifest_path(root, version)

    def change(manifest: pb.Manifest) -> None:
        raw = manifest.fragments[0]
        data_file = root / "data" / pb.DataFragment.FromString(raw).files[0].path
        data = data_file.read_bytes()
        messages = column_messages(data)
        for message in messages:
            for page in message.pages:
                edit_page(page)
        data_file.write_bytes(with_column_messages(data, messages))

        def larger(fragment: pb.DataFragment) -> None:
            fragment.physical_rows = num_rows
            fragment.files[0].file_size_bytes = 0

        manifest.fragments[0] = edited_fragment(raw, larger)

    path.write_bytes(edited_manifest(path.read_bytes(), change))


@pytest.fixture
def constant(tmp_path):
    """10^8 times 7 (800 MB decoded) in a file of two kilobytes."""
    root = copy_to_folder("types_2_2", tmp_path)
    grow(root, 1, ROWS, lambda page: constant_page(page, ROWS))
    return root


def test_a_preview_of_a_hundred_million_constant_rows_decodes_a_few(constant):
    with bounded():
        dataset = lance_nb.dataset(constant)
        assert dataset.count_rows() == ROWS
        assert dataset.head(10, columns=["id"])["id"].to_pylist() == [7] * 10
        assert dataset.to_table(["id"], offset=ROWS - 3, limit=9).num_rows == 3
        assert dataset.take([0, ROWS - 1, 12_345_678], ["id"])["id"].to_pylist() == [7] * 3
        assert dataset.sample(20, ["id"], seed=1).num_rows == 20


def test_the_first_batch_of_a_hundred_million_rows_takes_little_memory(constant):
    with bounded():
        batches = lance_nb.dataset(constant).to_batches(["id"])
        assert sum(next(batches).num_rows for _ in range(40)) == 40 * 8192


def test_a_reader_of_a_hundred_million_rows_is_not_read_ahead(constant):
    with bounded():
        reader = lance_nb.dataset(constant).scanner(["id"], batch_size=100).to_reader()
        assert reader.read_next_batch().num_rows == 100


def test_more_rows_than_an_address_can_count_are_refused(constant, tmp_path):
    grow(constant, 1, 2**60, lambda page: setattr(page, "length", 2**60))
    refused(lambda: lance_nb.dataset(constant).head(10, columns=["id"]), "rows in a page")


def test_two_thousand_times_the_same_page_previews_at_once(tmp_path):
    root = copy_to_folder("history", tmp_path)
    rows = repeat_pages(root, 2000)
    with bounded():
        dataset = lance_nb.dataset(root, VERSION)
        assert dataset.count_rows() == rows
        assert dataset.head(5)["id"].to_pylist() == [0, 1, 2, 3, 4]
        assert dataset.to_table(["id"], offset=rows - 1)["id"].to_pylist() == [5059]


def test_an_offset_far_behind_the_last_row_reads_nothing(constant):
    with bounded():
        dataset = lance_nb.dataset(constant)
        assert dataset.to_table(["id"], offset=2**70).num_rows == 0
        assert dataset.to_table(["id"], limit=0).num_rows == 0
        assert dataset.to_table(["id"], limit=2**70, offset=ROWS - 1).num_rows == 1
