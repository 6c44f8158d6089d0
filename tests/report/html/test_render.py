"""A page in HTML: no text becomes markup, and nothing is asked of the network."""

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from fusion_bench.report.html.render import (
    EXPORT,
    IMPORT,
    Asset,
    pack_json,
    page_script,
    page_style,
    read_asset,
    render_html,
)
from fusion_bench.report.page import (
    Column,
    Finding,
    NextStep,
    Page,
    Row,
    Section,
    Table,
    YamlBlock,
)
from tests.report.html.pages import page_data, parse_page

#: An element, an end of one, an end of CDATA, an entity, line ends, NUL, and text turned round.
EVIL = "<script>alert(1)</script>]]>&amp;\u2028\x00\u202e\u200f'\"-->"
SHOWN = "<script>alert(1)</script>]]>&amp;\\u2028\\x00\\u202e\\u200f'\"-->"


def evil_page() -> Page:
    table = Table(EVIL, (Column(EVIL, is_text=True), Column(EVIL)), (Row((EVIL, EVIL)),), (EVIL,))
    finding = Finding(EVIL, details=(EVIL,))
    section = Section(
        EVIL,
        text=EVIL,
        facts={EVIL: EVIL},
        findings=(finding, Finding(EVIL, "warning", details=(EVIL,))),
        parts=(table, YamlBlock(EVIL, {"key": EVIL.replace("\x00", "")})),
        key="collection 0",
    )
    sections = (section, Section(EVIL, is_folded=True))
    steps = (NextStep(EVIL, EVIL),)
    return Page(EVIL, sections, finding, section, steps, answer=f"{EVIL}.", advice=(EVIL,))


def test_no_text_becomes_markup() -> None:
    plain = parse_page(render_html(Page("t", ())))
    page = parse_page(render_html(evil_page(), {"text": EVIL}))
    scripts = [tag for tag, _ in page.tags].count("script")
    assert scripts == [tag for tag, _ in plain.tags].count("script") + 1  # the data
    # Title and heading with the answer and the name, headline and detail, advice, a step of two
    # texts, a folded section; each part of both other sections.
    assert page.text.count(SHOWN) == 10 + 2 * 15
    assert not set(page.text) & set("\u2028\x00\u202e\u200f")


def test_data_come_out_as_they_went_in_and_packed_as_plain_letters() -> None:
    data = {"text": EVIL, "numbers": [0.1, -1, None]}
    assert page_data(render_html(Page("t", ()), data)) == data
    assert render_html(evil_page(), {"a": 1}) == render_html(evil_page(), {"a": 1})
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", pack_json({"text": EVIL}))
    with pytest.raises(ValueError, match="JSON"):
        pack_json([float("nan")])


def test_the_policy_allows_what_is_inline_by_its_hash_only() -> None:
    html = render_html(evil_page(), {"a": 1})
    page = parse_page(html)
    (policy,) = (a["content"] for tag, a in page.tags if "http-equiv" in a and tag == "meta")
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for kind, text in (
        ("script-src", page.texts["script"][-1]),
        ("style-src", *page.texts["style"]),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    for _, attributes in page.tags:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
    assert not [a for tag, a in page.tags if tag in {"link", "iframe", "base"} or "src" in a]


def test_a_page_reads_without_script() -> None:
    table = Table(
        "Checks", (Column("check", is_text=True), Column("p")), (Row(("a", ".5")),), ("n",)
    )
    provenance = Section("Provenance", facts={"seed": "7"})
    findings = (Finding("good"), Finding("bad", "warning"))
    section = Section("Results", findings=findings, parts=(table,))
    page = Page("T", (section,), Finding("the answer"), provenance, answer="+0.1")
    text = parse_page(render_html(page)).text
    shown = [
        "T",
        "+0.1",
        "the answer",
        "Results",
        "1 warning",
        "bad",
        "good",
        "Checks",
        ".5",
        "seed",
    ]
    for part in shown:
        assert part in text


def test_the_title_is_the_answer_with_the_name_beside_it() -> None:
    html = render_html(Page("mine", (), Finding("lost", "worse"), answer="Keep a"))
    assert "<title>Keep a (mine)</title>" in html
    assert '<h1 id="title" class="tone-worse"><bdi>Keep a</bdi>' in html
    assert "<title>mine</title>" in render_html(Page("mine", ()))


@pytest.mark.parametrize(("required", "optional", "hidden"), [(5, 2, 0), (5, 3, 3), (9, 0, 2)])
def test_of_many_columns_seven_are_shown_at_first(
    required: int, optional: int, hidden: int
) -> None:
    columns: list[Column[str]] = [
        Column(f"c{i}", is_optional=i >= required) for i in range(required + optional)
    ]
    table = Table("T", tuple(columns), (Row(("1",) * len(columns)),))
    page = parse_page(render_html(Page("T", (Section(parts=(table,)),))))
    extra = [tag for tag, a in page.tags if "extra" in (a.get("class") or "").split()]
    assert (extra.count("th"), extra.count("td")) == (hidden, hidden)


# ── finding groups


def render(*findings: Finding) -> str:
    return render_html(Page("T", (Section("S", findings=findings),)))


def test_the_warning_that_matters_is_open_and_the_others_are_folded() -> None:
    keys = ("unanswered", "ties", "unjudged decide", "float32")
    html = render(*(Finding(f"About {key}. More.", "warning", key) for key in keys))
    assert "<h3>4 warnings</h3>\n<p>About unjudged decide. More.</p>" in html
    before, after = html.split("<summary>3 more warnings</summary>")
    for key in ("unanswered", "ties", "float32"):
        assert f"About {key}." not in before
        assert f"About {key}. More." in after
    assert "<summary>" not in render(Finding("Alone.", "warning")).split("Alone.")[0]


@pytest.mark.parametrize(
    ("tones", "title"),
    [
        (["plain"], "1 lint note"),
        (["warning", "warning"], "2 lint warnings"),
        (["plain", "warning"], "1 lint warning and 1 note"),
    ],
)
def test_lint_is_one_line_with_its_rules(tones: list[str], title: str) -> None:
    html = render(*(Finding(tone, tone, f"lint {tone}") for tone in tones))  # type: ignore[arg-type]
    rules = ", ".join(sorted(tones, reverse=True))
    assert f"<b>{title}</b> about the configuration: {rules}</summary>" in html
    assert ('class="warnings lint"' in html) == ("warning" in tones)
    assert '<ul class="findings">' not in html


# ── assets text


NAMES = sorted(
    path.name.removesuffix(".js")
    for path in (files("fusion_bench.report.html") / "assets/js").iterdir()
)


def test_colors_and_hashes_of_a_page() -> None:
    pattern = r'^ *:root(?::not\(\[data-theme="light"\]\)|\[data-theme="dark"\]) \{(.*?)\}'
    blocks = re.findall(pattern, read_asset("page.css"), re.MULTILINE | re.DOTALL)
    by_system, by_choice = (block.split() for block in blocks)
    assert by_system == by_choice
    assert len(by_choice) > 20
    digest = hashlib.sha256(b"a\n").digest()
    assert Asset("a\n").source == f"'sha256-{base64.b64encode(digest).decode()}'"


def test_modules_stand_in_the_order_of_their_imports_without_any() -> None:
    script = page_script().text
    order = re.findall(r"^const (\w+)_module = \(\(\) => \{$", script, re.MULTILINE)
    assert len(order) == len(set(order))
    assert order[-1] == "main"
    for name in order:
        for _, imported in IMPORT.findall(read_asset(f"js/{name}.js")):
            assert order.index(imported) < order.index(name)
    assert not re.findall(r"^(import|export)\b", page_script().text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_each_module_is_part_of_the_page_and_makes_no_markup(name: str) -> None:
    source = read_asset(f"js/{name}.js")
    for names, imported in IMPORT.findall(source):
        exported = {word for _, word in EXPORT.findall(read_asset(f"js/{imported}.js"))}
        for word in re.findall(r"\w+", names):
            assert word in exported
            assert len(re.findall(rf"\b{word}\b", source)) > 1
    assert f"const {name}_module = " in page_script().text
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", source)
    assert not re.findall(r"setAttribute\(\"style", source)
    assert source.count("\n") < 300


@pytest.mark.parametrize("text", [page_script().text, page_style().text])
def test_no_asset_ends_its_element_or_asks_the_network(text: str) -> None:
    assert "</" not in text
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|fetch\(", text)
