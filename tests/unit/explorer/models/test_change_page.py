from __future__ import annotations

import pyarrow as pa

from lance_nb.explorer.models.change_page import Changes, change_page
from lance_nb.explorer.models.page_texts import page_texts


def test_new_and_old_values_lie_one_behind_the_other() -> None:
    new = pa.table({"id": [1, 2], "name": ["a", "b"]})
    made = change_page(Changes("~+", new, {1: pa.array(["old"])}, {1: "1"}), offset=40)
    sidecar = made.to_json()
    assert (sidecar["kinds"], sidecar["marks"]) == ("~+", [[1, 0, "1"]])
    assert sidecar["split"] == len(made.page.buffers)
    assert made.buffers == (*made.page.buffers, *made.old.buffers)
    assert (made.page.offset, page_texts(made.old)) == (40, [["old"]])


def test_windows_of_our_own_have_no_types_and_numbers_on_the_right() -> None:
    window = Changes(
        "+", pa.table({"size": ["3 KB"], "why": [""]}), plain=True, numeric=frozenset([0])
    )
    size, why = change_page(window, 0).to_json()["page"]["columns"]
    assert (size["type"], size["look"], why["look"]) == ("", "number", "plain")


def test_a_window_that_is_too_large_is_cut() -> None:
    table = pa.table({"text": ["x" * 100] * 64})
    window = Changes("~" * 64, table, {0: pa.array(["y" * 100] * 64)}, {0: "1" * 64})
    made = change_page(window, 0, max_bytes=4000)
    assert made.page.num_rows == made.old.num_rows == 16
    assert len(made.to_json()["kinds"]) == len(made.to_json()["marks"][0][2]) == 16
    assert change_page(window, 0, max_bytes=1).page.num_rows == 1
