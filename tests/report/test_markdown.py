"""The page: a Markdown parser must find in it what was put there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from fusion_bench.evaluation.report_records import Report
from fusion_bench.report import tables
from fusion_bench.report.findings import sentences
from fusion_bench.report.markdown import Picture, escape, render
from tests.report import cases
from tests.report.cases import HOSTILE, SECOND

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
    """The text that a reader sees."""
    return "".join(
        token.content if token.type in {"text", "code_inline", "text_special"} else ""
        for token in tokens or []
    )


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
def test_escaped_text_is_shown_literally(name: str) -> None:
    seen = tables.escape_control_chars(name)
    table = f"| h |\n|:--|\n| **{escape(name)}** |\n"
    assert list(blocks(table)) == [("th", "h"), ("td", seen)]
    assert "<strong>" in PARSER.render(table)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_shown_literally(name: str) -> None:
    """The same blocks as with harmless names, with nothing but the names replaced."""
    stub = "stub"

    def page(word: str) -> str:
        found = cases.full(word, baseline=f"{word}2", split=word)
        found = found.model_copy(update={"name": word, "runs": (cases.run(word, unanswered=1),)})
        report = cases.report(found, name=word)
        return render(report, [Picture(0, word, "x.png")])

    harmless, text = page(stub), page(name)
    assert kinds(text) == kinds(harmless)
    expected = [
        (kind, seen.replace(stub, tables.escape_control_chars(name)))
        for kind, seen in blocks(harmless)
    ]
    found = list(blocks(text))
    assert [kind for kind, _ in found] == [kind for kind, _ in expected]
    assert found == expected


def test_description_is_one_paragraph() -> None:
    report = cases.report(cases.full(), settings={"description": "# One,\n\n  two\n- three\n"})
    assert list(blocks(render(report)))[1] == ("paragraph", "# One, two - three")
    without = cases.report(cases.full(), settings={"description": ""})
    assert list(blocks(render(without)))[1][0] == "th"


def test_the_page_says_what_the_tables_and_sentences_say() -> None:
    collection = cases.full("good|one")
    report = cases.report(collection, v2=False)
    found = list(blocks(render(report)))
    cells = [text for kind, text in found if kind == "td"]
    for table in (
        tables.main(report, collection),
        tables.checks(report, collection),
        tables.other(report, collection, [SECOND]),
        tables.inputs(collection),
    ):
        assert ("h3", table.title) in found
        for row in table.rows:
            width = len(row.cells)
            assert any(
                cells[i : i + width] == list(row.cells) for i in range(len(cells) - width + 1)
            ), row
        headers = [column.header for column in table.columns]
        assert all(("th", header) in found for header in headers)
        assert all(("paragraph", note) in found for note in table.notes)
    said = sentences(report, collection)
    assert {sentence.kind for sentence in said} == {"finding", "warning"}
    assert all(("paragraph", sentence.text) in found for sentence in said)


def test_warnings_are_an_alert_and_only_where_there_are_any() -> None:
    report = cases.report(cases.full(), v2=False)
    assert "> [!WARNING]\n> - RAG\\_FUSION\\_V2\\_ENABLED is off" in render(report)
    assert "WARNING" not in render(cases.report(cases.full()))


def test_rows_are_marked() -> None:
    text = render(cases.report(cases.full()))
    assert text.count("| *for scale* |") == 2  # the tables with bounds
    assert re.search(r"^\| \*\*base\*\* \| \*\*0\.4000\*\* \|", text, re.MULTILINE)
    main = text[text.index("decides") : text.index("### Can the table")]
    order = [line.split("|")[1].strip() for line in main.splitlines() if line.startswith("| ")]
    assert order == [
        "system",
        ":--",
        "better one",
        "**base**",
        "worse one",
        "*for scale*",
        "*best single source*",
        "*best source per query*",
        "*perfect order*",
    ]


def facts(report: Report) -> dict[str, str]:
    cells = [text for kind, text in blocks(render(report)) if kind == "td"]
    return dict(pairwise(cells))


def test_facts() -> None:
    known = facts(cases.report(cases.full(), v2=False))
    assert known["from"] == f"experiment.yaml (SHA-256 {'1' * 64})"
    assert known["with"] == "numpy 2.0"
    assert known["RAG_FUSION_V2_ENABLED"] == "off: v2 ran as v1"
    assert (known["resamples"], known["seed"], known["alpha"]) == ("by default", "7", "0.05")
    assert known["queries"] == "3 in 3 groups, 0 of them without a relevant document"
    assert known["split"] == "none: all judged queries"
    assert known["query type"] == "all"
    assert known["best single source chosen on"] == "the evaluated queries"
    assert known["judgments"] == "pooled, relevant from grade 1"
    assert known["fingerprint of the parts read"] == "f" * 64 + " (qrels)"
    part = cases.full(split="test", query_type="local", tuning_split="dev", judgments="complete")
    known = facts(cases.report(part))
    assert known["RAG_FUSION_V2_ENABLED"] == "on"
    assert (known["split"], known["query type"]) == ("test", "local")
    assert known["best single source chosen on"] == "dev"
    assert known["judgments"].startswith("complete, ")


def test_pictures_stand_in_their_own_collection() -> None:
    report = cases.report(cases.full(), cases.full().model_copy(update={"name": "second"}))
    pictures = [Picture(1, "b|*", "b.png"), Picture(0, "a", "a.png")]
    text = render(report, pictures)
    assert text.index("![a](a.png)") < text.index("## second") < text.index("![b\\|\\*](b.png)")
    assert text.count("![") == 2


@pytest.mark.parametrize("name", [*NAMES, "`" * 3, "x" + "`" * 7 + "\n```\n</details>"])
def test_details_can_be_read_back(name: str) -> None:
    found = cases.full(name)
    digests = {name: "0" * 64}
    found = found.model_copy(update={"digests": digests})
    report = cases.report(found, settings={"description": name, "nested": {"list": [1, None]}})
    fences = [token for token in PARSER.parse(render(report)) if token.type == "fence"]
    assert [token.info for token in fences] == ["yaml"] * 3
    systems, settings, parts = (yaml.safe_load(token.content) for token in fences)
    configs = {row.name: row.config for row in found.systems if row.config is not None}
    assert systems == {"systems": configs}
    assert settings == report.settings
    assert parts == digests


def test_fences_are_longer_than_what_they_hold() -> None:
    text = render(cases.report(cases.full("`" * 5)))
    assert f"\n{'`' * 6}yaml\n" in text
    assert "\n```yaml\n" in render(cases.report(cases.full()))
