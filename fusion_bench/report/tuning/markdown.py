"""A tuning run as GitHub Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fusion_bench.report.markdown import _facts, _paragraph, _table, _yaml, escape
from fusion_bench.report.tuning import tables
from fusion_bench.report.tuning.findings import sentences
from fusion_bench.report.tuning.tuning_records import TuningReport

__all__ = ["Picture", "render"]


@dataclass(frozen=True)
class Picture:
    """A picture beside the page.

    Attributes:
        file: Its name, relative to the page.
        title: What it shows.
        meaning: What it says, and how to read it.
    """

    file: str
    title: str
    meaning: str


def render(tuning: TuningReport, pictures: Sequence[Picture] = ()) -> str:
    """The whole page.

    Args:
        tuning: What to show.
        pictures: Pictures that stand beside it, each with its meaning in words.
    """
    lines = [*_head(tuning)]
    for table in tables.all_tables(tuning):
        lines += _table(table)
    for picture in pictures:
        lines += [f"### {_paragraph(picture.title)}", "", _paragraph(picture.meaning), ""]
        lines += [f"![{escape(picture.title)}]({picture.file})", ""]
    lines += _details(tuning)
    return "\n".join(lines) + "\n"


def _head(tuning: TuningReport) -> Iterator[str]:
    yield from (f"# {_paragraph(f'{tuning.name}: tuning {tuning.system}')}", "")
    found = sentences(tuning)
    yield from (f"- {_paragraph(s.text)}" for s in found if s.kind == "finding")
    yield ""
    warnings = [f"> - {_paragraph(s.text)}" for s in found if s.kind == "warning"]
    if warnings:
        yield from ("> [!WARNING]", *warnings, "")
    versions = ", ".join(f"{k} {v}" for k, v in tuning.provenance.versions.items())
    yield from _facts(
        {
            "dataset": tuning.dataset,
            "fingerprint of the parts read": tuning.fingerprint,
            "split": tuning.split
            + ("" if tuning.split_seed is None else f", split seed {tuning.split_seed!r}"),
            "tried": f"{len(tuning.trials):,} settings",
            **{key: str(value) for key, value in tuning.settings.items() if value is not None},
            "made": tuning.provenance.created,
            "with": versions,
        }
    )


def _details(tuning: TuningReport) -> Iterator[str]:
    """Both systems in full: what it takes to run them again."""
    yield from ("<details>", "<summary>The systems</summary>", "")
    yield from ("The default:", "", *_yaml(tuning.default))
    yield from (f"Tuned (trial {tuning.choice.trial}):", "", *_yaml(tuning.choice.config))
    yield from ("</details>", "")
