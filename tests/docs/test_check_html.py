"""The check of the built site."""

from pathlib import Path

import pytest

from docs.website.check_html import check_html

GOOD = """<link rel="stylesheet" href="a.css"><h1 id="top"></h1><a href="sub/b.html#x">b</a>
<a href="https://elsewhere.org/">a link may lead out</a><a href="#top">up</a>"""


def make_site(folder: Path, page: str, style: str = "") -> Path:
    (folder / "sub").mkdir()
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "sub/b.html").write_text('<p id="x"><a href="../index.html?a=b#top">a</a></p>')
    (folder / "a.css").write_text(style, encoding="utf-8")
    return folder


def test_a_good_site_has_no_problem(tmp_path: Path) -> None:
    assert check_html(make_site(tmp_path, GOOD, "a { background: url(b.png) }")) == []


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.org/a.css">',
        '<img src="http://a.org/b.png">',
        '<p style="background: url(https://a.org/b.png)">',
    ],
)
def test_what_is_loaded_from_elsewhere(tmp_path: Path, page: str) -> None:
    [problem] = check_html(make_site(tmp_path, page + GOOD))
    assert problem.startswith("index.html: loads ")


@pytest.mark.parametrize("style", ['@import "https://a.org/b.css";', "a{src:url('//a.org/b')}"])
def test_what_a_style_loads(tmp_path: Path, style: str) -> None:
    [problem] = check_html(make_site(tmp_path, GOOD, style))
    assert problem.startswith("a.css: loads ")


@pytest.mark.parametrize("link", ["sub/c.html", "sub/b.html#y", "#nowhere"])
def test_a_link_that_leads_nowhere(tmp_path: Path, link: str) -> None:
    site = make_site(tmp_path, f'{GOOD}<a href="{link}">a</a>')
    assert check_html(site) == [f"index.html: leads nowhere: {link}"]
