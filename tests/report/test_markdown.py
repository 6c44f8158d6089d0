"""Markdown: a parser must read back what the page holds."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from fusion_bench.report import evaluation_page as evaluation
from fusion_bench.report import tuning_page as tuning
from fusion_bench.report.markdown import (
    MAX_SUMMARY_LINES,
    escape_markdown,
    render_page,
    render_summary,
)
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, YamlBlock
from fusion_bench.util.formatting import escape_control_chars
from tests.report import cases, tuning_cases
from tests.report.cases import HOSTILE, example_page

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

NAMES = [
    HOSTILE,
    "a|b",
    "a\\|b",
    "<script>alert(1)</script>",
    "<details>",
    "`code`",
    "``` fence",
    "*x* **y** _z_ __w__",
    "~~gone~~",
    "[text](http://example.com)",
    "![image](x.png)",
    "[ref]",
    "$x^2$",
    "&amp; &lt; &#65;",
    "# heading",
    "## heading ##",
    "trailing #",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "12) item",
    "123456789. item",
    "1.",
    "> quote",
    "---",
    "===",
    "***",
    "    code",
    " edges ",
    "  ",
    "a\\",
    "\\*",
    "x\ny",
    "x\ty\rz\x1b[0m\x00",
    "http://example.com",
    "<http://example.com>",
    "ünï 中文 🙂",
    "a  b",
    "|",
    "''\"\"",
]


def plain(tokens: list[Token] | None) -> str:
    """The text that a reader sees; spaces of width 0, which break links, are not."""
    return "".join(
        token.content if token.type in {"text", "code_inline", "text_special"} else ""
        for token in tokens or []
    ).replace("\u200b", "")


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text of every block of text."""
    tokens = PARSER.parse(text)
    for before, token in pairwise(tokens):
        if token.type == "inline":
            kind = before.type.removesuffix("_open")
            yield (before.tag if kind == "heading" else kind), plain(token.children)


def kinds(text: str) -> list[str]:
    return [token.type for token in PARSER.parse(text)]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_literally_alone_and_all_over_a_page(name: str) -> None:
    seen = escape_control_chars(name)
    table = f"| h |\n|:--|\n| **{escape_markdown(name)}** |\n"
    assert list(blocks(table)) == [("th", "h"), ("td", seen)]
    assert "<strong>" in PARSER.render(table)
    # The same blocks as with a harmless name, with nothing but the name replaced.
    stub = "stub"
    harmless, text = (render_page(example_page(word)) for word in (stub, name))
    assert kinds(text) == kinds(harmless)
    expected = [
        (kind, seen.replace(stub, escape_control_chars(name))) for kind, seen in blocks(harmless)
    ]
    assert list(blocks(text)) == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("http://x.org/a", "http:|//x.org/a"),
        ("HTTPS://x.org", "HTTPS:|//x.org"),
        ("ftp://x", "ftp:|//x"),
        ("www.x.org", "www|.x.org"),
        ("@team/people", "@|team/people"),
        (".@team", ".@|team"),
        ("me@x.org", "me@|x.org"),
        ("mailto:me@x.org", "mailto:me@|x.org"),
        ("x/y#12", "x/y\\#|12"),
        ("GH-12", "GH-|12"),
        ("nDCG@10", "nDCG@10"),
        ("a: b, c://", "a: b, c:|//"),
        ("\u202ename", "\\\\u202ename"),
    ],
)
def test_no_name_is_a_link_or_a_mention(name: str, shown: str) -> None:
    assert escape_markdown(name) == shown.replace("|", "&#8203;")


def test_yaml_escapes_what_turns_or_hides_text() -> None:
    data = {"\u202ekey": ["a\u200bb", "日本語", "http://x"]}
    lines = "\n".join(
        render_page(Page("x", (Section(parts=(YamlBlock("y", data),)),))).splitlines()
    )
    assert not set(lines) & {"\u202e", "\u200b"}
    assert "日本語" in lines
    [block] = re.findall(r"```yaml\n(.*?)```", lines, re.DOTALL)
    assert yaml.safe_load(block) == data


@pytest.mark.parametrize("name", [*NAMES, "`" * 3, "x" + "`" * 7 + "\n```\n</details>"])
def test_yaml_can_be_read_back(name: str) -> None:
    data = {name: [1, None, {"nested": name}]}
    page = Page("x", (Section(parts=(YamlBlock("Data", data),)),))
    [fence] = [token for token in PARSER.parse(render_page(page)) if token.type == "fence"]
    assert fence.info == "yaml"
    assert yaml.safe_load(fence.content) == data


# ── A page in at most 40 lines: the verdict first, the provenance last


PAGES = {
    "example": cases.example_page(),
    "usual": evaluation.build_page(cases.report(cases.full())),
    "many systems": evaluation.build_page(cases.report(cases.many(200))),
    "many collections": evaluation.build_page(cases.report(*[cases.many(30)] * 12)),
    "empty": evaluation.build_page(cases.report()),
    "tuning": tuning.build_page(tuning_cases.record(by_type=tuning_cases.typed())),
    "nothing": Page("nothing", ()),
}


@pytest.mark.parametrize("name", PAGES)
def test_it_has_at_most_forty_lines_and_the_headline_first(name: str) -> None:
    text = render_summary(PAGES[name])
    lines = text.splitlines()
    assert len(lines) <= MAX_SUMMARY_LINES
    assert lines[0].startswith("# ")
    assert text.endswith("\n")
    if PAGES[name].headline is not None:
        assert lines[2].startswith("**")


def test_the_verdict_its_table_and_the_provenance() -> None:
    text = render_summary(PAGES["usual"])
    assert text.index("+100.0 %: 2 queries better") < text.index("| better one |")
    last = text.splitlines()[-1]
    assert last.startswith("*experiment.yaml, 2025-01-02T03:04:05+00:00; ")
    assert all(part in last for part in ("ties trec", "seed 7", "alpha 0.05", "data ffffffffffff"))
    assert text.count("RR@10") == 2  # in the title and the heading of the first table


def test_rows_collections_and_findings_that_are_left_out_are_counted() -> None:
    text = render_summary(PAGES["many systems"])
    assert "| **base** |" in text
    assert "more |" in text
    assert "more sections in " in render_summary(PAGES["many collections"])
    findings = tuple(Finding(f"finding {i}") for i in range(9))
    table = Table("t", (Column("a", is_text=True),), (Row(("x",)),))
    text = render_summary(Page("p", (Section("s", findings=findings, parts=(table,)),)))
    assert "finding 5" in text
    assert "3 more in " in text
