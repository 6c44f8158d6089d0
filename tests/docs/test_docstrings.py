"""The parts of a docstring, and its markup as Markdown."""

import pytest

from docs.website.docstrings import find_meanings, parse_docstring, to_markdown

TEXT = """``rbc``: Σ_s w_s.

    A user reads on with probability φ.

    Source: Bailey et al.,
    SIGIR 2017.

    Example: .5, then .25.

    Attributes:
        phi: φ, which
            goes on.
        k: Another.
    """


def test_the_parts_of_a_docstring() -> None:
    parts = parse_docstring(TEXT)
    assert parts.summary == "Σ<sub>s</sub> w<sub>s</sub>."
    assert parts.prose == ("A user reads on with probability φ.",)
    assert (parts.source, parts.example) == ("Bailey et al., SIGIR 2017.", ".5, then .25.")
    assert parts.attributes == {"phi": "φ, which goes on.", "k": "Another."}
    text = "``a``: b.\n\n    Attributes:\n        alpha: One\n            two.\n    "
    assert parse_docstring(text).attributes == {"alpha": "One two."}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("``k``", "`k`"),
        (":mod:`~a.b` and :class:`C`", "`a.b` and `C`"),
        ("see https://a.b/c.", "see <https://a.b/c>."),
        ("clipped to [0, 1], a < b", r"clipped to \[0, 1\], a \< b"),
        ("``a[0] < b_s``", "`a[0] < b_s`"),
        (
            "Σ_s w_s/(rank_constant + MAP_s)",
            "Σ<sub>s</sub> w<sub>s</sub>/(rank_constant + MAP<sub>s</sub>)",
        ),
    ],
)
def test_markup(text: str, expected: str) -> None:
    assert to_markdown(text) == expected


def test_a_class_says_more_than_its_base() -> None:
    class Base:
        """Base.

        Attributes:
            a: Of the base.
            b: Of the base.
        """

    class Derived(Base):
        """Derived.

        Attributes:
            b: Of the class.
        """

    assert find_meanings(Derived) == {"a": "Of the base.", "b": "Of the class."}
