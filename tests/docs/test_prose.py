"""Pages are plain: no long sentence, no word that makes a reader read twice."""

import ast
import re
from pathlib import Path

import pytest

from docs.website.page import list_pages
from tests.commands import leaf_commands
from tests.docs.prose import MOST_WORDS, find_faults, list_sentences

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fusion_bench"
#: Pages that a command writes, or that quote what one printed.
EXEMPT = {"glossary", "layouts", "referee"}
USERS = [path for path in list_pages() if path.parent == ROOT / "docs"]
PAGES = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *list_pages())
    if not {path.stem, path.parent.name} & EXEMPT
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_no_sentence_to_read_twice(page: Path) -> None:
    assert find_faults(page.read_text(encoding="utf-8")) == []


def count_words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def test_pages_are_short() -> None:
    words = {path.stem: count_words(path) for path in USERS}
    assert max(words.values()) <= 2100, words
    assert sum(words.values()) <= 20700, words
    assert count_words(ROOT / "README.md") <= 1000


@pytest.mark.parametrize(("folder", "most"), [("reference", 28000), ("studies", 26000)])
def test_a_folder_of_pages_is_short(folder: str, most: int) -> None:
    pages = [path for path in list_pages() if path.parent.name == folder]
    words = {path.stem: count_words(path) for path in pages if path.stem != "layouts"}
    assert sum(words.values()) <= most, words


LONG = " ".join(["Word"] * (MOST_WORDS + 1))


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("You run `fusion-bench eval a b c`. It prints a table.", 0),
        (f"{LONG}.", 1),
        (f"{LONG[:-5]}. {LONG[:-5]}.", 0),
        (f"- {LONG[:-5]}\n- {LONG[:-5]}", 0),
        (f"| {LONG[:-5]} | {LONG[:-5]} |", 0),
        (f"```text\n{LONG}\n```", 0),
        ("Whoever tunes, tests.", 1),
        ("Where no list has a score, ranks count.", 1),
        ("Where do lists come from?", 0),
        ("The value is that of the baseline.", 1),
        ("The page says so.", 1),
        ("# What stands behind it", 0),
    ],
)
def test_a_fault_is_found_and_plain_text_has_none(text: str, faults: int) -> None:
    assert len(find_faults(text)) == faults, find_faults(text)


def test_sentences_end_at_their_dots() -> None:
    page = (
        "See [a b](c.md). At .05, e.g. by Blum et al. (2015), it holds.\n\n1. One.\n2. Two. Three."
    )
    assert list_sentences(page) == [
        "See a b.",
        "At .05, e.g by Blum et al (2015), it holds.",
        "One.",
        "Two.",
        "Three.",
    ]


@pytest.mark.parametrize("name", sorted(leaf_commands()))
def test_the_help_of_a_command_has_no_sentence_to_read_twice(name: str) -> None:
    command = leaf_commands()[name]
    text = (command.help or "").partition("Examples:")[0]
    helps = [getattr(each, "help", "") or "" for each in command.params]
    assert [fault for each in (text, *helps) for fault in find_faults(each)] == []


def list_messages() -> dict[str, list[str]]:
    """Place of each error that the package raises → its parts between colons and semicolons."""
    messages = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                messages[place] = re.split(r"[:;] ", read_text(node.exc.args[0]))
    return messages


def read_text(node: ast.expr) -> str:
    """The text of a literal, with ``x`` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(read_text, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "x"


def test_no_error_is_read_twice() -> None:
    messages = list_messages()
    assert len(messages) > 900
    found = {
        place: [each for part in parts for each in find_faults(part)]
        for place, parts in messages.items()
    }
    assert {place: faults for place, faults in found.items() if faults} == {}
