from __future__ import annotations

from lance_nb.explorer.page_policy import content_hash, page_policy


def test_a_hash_is_what_browsers_compare_with() -> None:
    # The example of the specification, section 8.2.
    assert content_hash("doSubmit()") == "sha256-jzgBGA4UWFFmpOBq0JpdsySukE1FrEN5bUpoK8Z29fY="


def test_a_page_runs_its_script_and_loads_what_is_named() -> None:
    policy = page_policy("a {}", "img-src data:", script="doSubmit()").split("; ")
    assert policy == [
        "default-src 'none'", f"script-src '{content_hash('doSubmit()')}'",
        f"style-src '{content_hash('a {}')}'", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    ]  # fmt: skip
    assert "script-src" not in page_policy("a {}", "img-src data:")
