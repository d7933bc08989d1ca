from __future__ import annotations

import re

from lance_nb.explorer.html_page import content_hash, explorer_page, html_page


def policy_of(page: str) -> list[str]:
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    return policy.split("; ")


def test_a_hash_is_what_browsers_compare_with() -> None:
    # The example of the specification, section 8.2.
    assert content_hash("doSubmit()") == "sha256-jzgBGA4UWFFmpOBq0JpdsySukE1FrEN5bUpoK8Z29fY="


def test_a_page_runs_its_script_and_loads_what_is_named() -> None:
    assert policy_of(html_page("t", "", style="a {}", script="doSubmit()")) == [
        "default-src 'none'", f"script-src '{content_hash('doSubmit()')}'",
        f"style-src '{content_hash('a {}')}'", "img-src data:", "base-uri 'none'",
        "form-action 'none'",
    ]  # fmt: skip
    page = html_page("t", "", style="a {}", script="f()", makes_modules=True)
    assert policy_of(page)[1] == f"script-src '{content_hash('f()')}' blob:"
    page = html_page("t", "", style="a {}")
    assert "script" not in page


def test_neither_title_nor_data_can_end_its_block() -> None:
    hostile = "</title></script><script>alert(1)</script>"
    page = explorer_page(
        hostile,
        ("start();", {"a.js": hostile}),
        ("data", {"name": hostile}),
        sources="img-src data:",
    )
    assert page.count("<script") == page.count("</script>") == 3
    assert page.count("</title>") == 1
