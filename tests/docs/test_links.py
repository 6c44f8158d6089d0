"""Links of Markdown as links of the site, and sections as pages of their own."""

import pytest

from docs.website.links import Links
from docs.website.sections import raise_headings, slugify, split_sections

PAGES = {"README.md": "index.md", "docs/lint.md": "lint.md", "docs/gate.md": "gate.md"}
ANCHORS = {"docs/lint.md#no-effect": "lint/no-effect.md"}


@pytest.mark.parametrize(
    ("origin", "place", "target", "expected"),
    [
        ("docs/gate.md", "gate.md", "lint.md", "lint.md"),
        ("docs/gate.md", "gate.md", "lint.md#no-effect", "lint/no-effect.md"),
        ("docs/gate.md", "gate.md", "lint.md#other", "lint.md#other"),
        ("docs/gate.md", "gate.md", "#keys", "#keys"),
        ("docs/gate.md", "gate.md", "../README.md", "index.md"),
        ("docs/lint.md", "lint/no-effect.md", "gate.md#keys", "../gate.md#keys"),
        ("README.md", "index.md", "docs/gate.md", "gate.md"),
        ("docs/gate.md", "gate.md", "https://a.b/c", "https://a.b/c"),
        ("docs/gate.md", "gate.md", "../pyproject.toml", "files/pyproject.toml"),
    ],
)
def test_a_link(origin: str, place: str, target: str, expected: str) -> None:
    links = Links(PAGES, ANCHORS)
    assert links.rewrite(f"a [b `c`]({target}) d", origin, place) == f"a [b `c`]({expected}) d"
    assert not links.broken


def test_links_are_collected_or_broken_and_code_is_left_alone() -> None:
    links = Links(PAGES, ANCHORS)
    links.rewrite("[a](nowhere.md) [b](../../outside.md)", "docs/gate.md", "gate.md")
    assert links.broken == ["docs/gate.md: nowhere.md", "docs/gate.md: ../../outside.md"]
    text = "`[a](x.md)`\n\n```md\n[a](x.md)\n## No heading\n```\n"
    links = Links(PAGES, ANCHORS)
    assert links.rewrite(text, "docs/gate.md", "gate.md") == text
    assert raise_headings(text) == text
    assert split_sections(text) == (text, {})
    links.rewrite("![a](../pyproject.toml)", "docs/gate.md", "gate.md")
    assert links.files == {"pyproject.toml"}


def test_sections() -> None:
    text = "# Title\n\nIntro.\n\n## One `two`\n\n### Inner\n\nText.\n\n## Three\n\nMore.\n"
    intro, sections = split_sections(text)
    assert intro == "# Title\n\nIntro.\n\n"
    assert sections == {"One `two`": "### Inner\n\nText.\n", "Three": "More.\n"}
    assert raise_headings(sections["One `two`"]) == "## Inner\n\nText.\n"
    assert slugify("One `two`, (three)") == "one-two-three"
