"""A page for each lint rule: its section of ``docs/reference/lint.md``, and what lint says."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import yaml
from rich.console import Console

from docs.website.docstrings import parse_docstring
from docs.website.page import ROOT, Page, format_code, format_contents, format_table
from docs.website.sections import raise_headings, split_sections
from fusion_bench.checks.lint import (
    make_lint_report,
)
from fusion_bench.checks.lint_rule import DatasetFacts, Rule, load_rules
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.report.data_warnings import build_lint_page
from fusion_bench.report.terminal import print_page

ORIGIN = "docs/reference/lint.md"
#: Of the pages in Sphinx's source folder.
FOLDER = "reference"
#: Columns of the terminal that its answer is printed for.
WIDTH = 90
#: What the examples of the page are linted on, as its introduction says.
FACTS = DatasetFacts(
    "example",
    {
        "bm25": frozenset({"keyword"}),
        "dense": frozenset({"question", "semantic"}),
        "graph": frozenset({"graph"}),
    },
    {"ltr": "unit"},
    frozenset(),
    intents=frozenset(),
)


def lint_paths() -> dict[str, str]:
    """Rule → path of its page."""
    return {name: f"{FOLDER}/lint/{name}.md" for name in load_rules()}


def build_lint_pages() -> Iterator[Page]:
    """The page of every rule, and the page of all rules."""
    intro, sections = split_sections((ROOT / ORIGIN).read_text(encoding="utf-8"))
    rules = load_rules()
    rows = [
        (f"[`{name}`](lint/{name}.md)", rule.severity, _summarize(rule))
        for name, rule in rules.items()
    ]
    contents = format_contents((f"lint/{name}" for name in rules), is_hidden=True)
    table = format_table(("rule", "severity", "what it finds"), rows)
    yield Page(f"{FOLDER}/lint.md", "\n".join([intro, "## Rules\n", table, contents]))
    for name, rule in rules.items():
        yield Page(f"{FOLDER}/lint/{name}.md", _build_page(name, rule, sections[name]))


def _summarize(rule: Rule) -> str:
    return parse_docstring(rule.find_problems.__doc__ or "").summary


def _build_page(name: str, rule: Rule, section: str) -> str:
    text = raise_headings(section)
    answer = format_code(run_lint(name, section))
    remedy = "\n## What to do\n"
    text = text.replace(remedy, f"\n`fusion-bench lint` says:\n\n{answer}{remedy}")
    summary = _summarize(rule)
    return "\n".join(
        [
            f"# {name}\n",
            f"{summary[:1].upper()}{summary[1:]}\n",
            text,
            "To accept the finding, name it in the experiment:\n",
            format_code(f"lint: {{ignore: [{name}]}}", "yaml"),
        ]
    )


def run_lint(name: str, section: str) -> str:
    """What ``lint`` prints of the example of a section, on the dataset of the page."""
    [block] = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    example = yaml.safe_load(block)
    experiment, source = make_experiment("mine", {"mine": example["system"]}, dataset=FACTS.name)
    report = make_lint_report(experiment, source, [FACTS], engine=example.get("engine"))
    findings = tuple(finding for finding in report.findings if finding.id == name)
    page = build_lint_page(report.model_copy(update={"findings": findings, "untranslated": {}}))
    with io.StringIO() as stream:
        print_page(page, Console(file=stream, width=WIDTH, color_system=None, force_terminal=True))
        return re.sub(r"[ ]+$", "", stream.getvalue().strip(), flags=re.MULTILINE)
