from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from fusion_bench.report.html.render import (
    EXPORT,
    IMPORT,
    Asset,
    page_script,
    page_style,
    read_asset,
)

NAMES = sorted(
    path.name.removesuffix(".js")
    for path in (files("fusion_bench.report.html") / "assets/js").iterdir()
)


def test_the_dark_colors_are_the_same_by_choice_and_by_the_system() -> None:
    pattern = r'^ *:root(?::not\(\[data-theme="light"\]\)|\[data-theme="dark"\]) \{(.*?)\}'
    blocks = re.findall(pattern, read_asset("page.css"), re.MULTILINE | re.DOTALL)
    by_system, by_choice = (block.split() for block in blocks)
    assert by_system == by_choice
    assert len(by_choice) > 20


def test_a_hash_is_that_of_the_text() -> None:
    digest = hashlib.sha256(b"a\n").digest()
    assert Asset("a\n").source == f"'sha256-{base64.b64encode(digest).decode()}'"


def test_a_module_stands_after_those_that_it_imports() -> None:
    script = page_script().text
    order = re.findall(r"^const (\w+)_module = \(\(\) => \{$", script, re.MULTILINE)
    assert len(order) == len(set(order))
    assert order[-1] == "main"
    for name in order:
        for _, imported in IMPORT.findall(read_asset(f"js/{name}.js")):
            assert order.index(imported) < order.index(name)


def test_the_script_has_neither_import_nor_export() -> None:
    assert not re.findall(r"^(import|export)\b", page_script().text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_module_imports_is_exported_and_used(name: str) -> None:
    source = read_asset(f"js/{name}.js")
    for names, imported in IMPORT.findall(source):
        exported = {word for _, word in EXPORT.findall(read_asset(f"js/{imported}.js"))}
        for word in re.findall(r"\w+", names):
            assert word in exported
            assert len(re.findall(rf"\b{word}\b", source)) > 1


@pytest.mark.parametrize("name", NAMES)
def test_every_module_is_part_of_the_page(name: str) -> None:
    assert f"const {name}_module = " in page_script().text


@pytest.mark.parametrize("text", [page_script().text, page_style().text])
def test_no_asset_ends_its_element_or_asks_the_network(text: str) -> None:
    assert "</" not in text
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|fetch\(", text)


@pytest.mark.parametrize("name", NAMES)
def test_no_module_makes_markup_of_a_text(name: str) -> None:
    source = read_asset(f"js/{name}.js")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", source)
    assert not re.findall(r"setAttribute\(\"style", source)
    assert source.count("\n") < 300
