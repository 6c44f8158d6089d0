r"""Tables in LaTeX: those of a page, and one of systems × measures with marks of significance.

The text needs ``\usepackage{booktabs}`` and UTF-8 input, which is LaTeX's default. Letters beyond
Latin need a font that has them, which XeLaTeX and LuaLaTeX find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Final, NamedTuple

from fusion_bench._version import __version__
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.compared_reports import (
    ComparisonPlan,
    plan_comparison,
    read_inference_settings,
)
from fusion_bench.evaluation.report_file import Report
from fusion_bench.measures import parse_measure
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.answer_texts import (
    DIFFERENCE,
    describe_family,
    interval_column,
    p_column,
)
from fusion_bench.report.page import Page, Table, Tone, make_safe_name
from fusion_bench.stats.comparison import BETTER, WORSE, Comparison
from fusion_bench.stats.comparison_family import compare_tables
from fusion_bench.stats.inference import find_rivals
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_coverage,
    format_number,
    pluralize,
)

#: Columns of the primary measure that may stand beside the measures.
DIFFERENCE_COLUMNS: Final = ("difference", "interval", "p")
#: What stands behind a mean: better or worse than the baseline, or unjudged documents decide.
MARKS: Final[dict[str, str]] = {
    **dict.fromkeys(BETTER, r"\uparrow"),
    **dict.fromkeys(WORSE, r"\downarrow"),
    "unjudged decide": "?",
}


#: Brackets and asterisks are harmless but at the start of a row, where they belong to its end.
LATEX_SPECIAL = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"{{{c}}}" for c in "[]*"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",  # babel makes the character itself a command in some languages
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\neq$",
    "→": r"$\rightarrow$",
    "√": r"$\surd$",
    "Σ": r"$\Sigma$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "σ": r"$\sigma$",
    "φ": r"$\varphi$",
    "∞": r"$\infty$",
    "…": r"\dots{}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
}
#: Two of these together would become another character.
LATEX_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)|(?<=[?!])(?=`)")
#: Spaces that LaTeX would drop.
LATEX_SPACES = re.compile(r"(?<= ) |^ | $")
#: A minus sign: before a number that stands alone or begins an interval.
LATEX_MINUS = re.compile(r"(?<![^\s\[(,…])-(?=\d|\.\d)")
LATEX_SPECIAL_PATTERN = re.compile("|".join(re.escape(c) for c in LATEX_SPECIAL))


def find_columns(
    names: Sequence[str], measures: Sequence[str], binary_relevance: int = 1
) -> tuple[str, ...]:
    """The columns of a table in the order asked for.

    Args:
        names: As a user writes them; none = all measures.
        measures: Canonical names.
        binary_relevance: With which names of measures are read.

    Raises:
        UnknownNameError: A name is neither a measure of these nor a column of differences.
        ConfigError: It is none of any measure.
    """
    columns = []
    for name in names:
        is_known = name in DIFFERENCE_COLUMNS or name in measures
        column = name if is_known else parse_measure(name, binary_relevance=binary_relevance).name
        if column not in (*DIFFERENCE_COLUMNS, *measures):
            raise UnknownNameError("column", name, (*measures, *DIFFERENCE_COLUMNS))
        columns.append(column)
    return tuple(columns) or tuple(measures)


class _Tests(NamedTuple):
    """What is shown on one collection.

    Attributes:
        plan: The systems.
        family: What p accounts for, in a sentence.
        alpha: The level of p and intervals.
        comparisons: By measure and candidate: its difference from the baseline.
        letters: By measure and system, where they are asked for.
    """

    plan: ComparisonPlan
    family: str
    alpha: float
    comparisons: dict[tuple[str, str], Comparison]
    letters: dict[tuple[str, str], str]


def render_paper_tables(
    first: Report,
    second: Report | None = None,
    *,
    baseline: str | None = None,
    candidates: Sequence[str] = (),
    columns: Sequence[str] = (),
    letters: bool = False,
) -> str:
    r"""A LaTeX ``table`` for each collection: means, and what is shown of differences.

    On every measure the systems are one family, by the rule of the primary measure.

    Args:
        first: Gives the baseline.
        second: Gives the candidates; the first itself when None.
        baseline: The system that marks refer to; by default the report's own.
        candidates: The other rows; by default all.
        columns: Measures, and names of :data:`DIFFERENCE_COLUMNS`; none = all measures.
        letters: Whether means have letters, of which systems share one that are not shown to
            differ in the family of all pairs.

    Raises:
        ConfigError: The reports cannot be compared.
        UnknownNameError: No such system or column.
    """
    settings = read_inference_settings(first.settings, first.name)
    plans = plan_comparison(first, second, baseline=baseline, candidates=candidates)
    shown = [
        find_columns(columns, plan.table.measures, plan.left.binary_relevance) for plan in plans
    ]
    size = sum(len(plan.table.systems) - 1 for plan in plans)
    coverage = format_coverage(settings["alpha"])
    family = describe_family(size, coverage)
    compared = compare_tables([plan.table for plan in plans], **settings, every=True)
    seed, alpha, tests = settings["seed"], settings["alpha"], []
    for plan, comparisons in zip(plans, compared, strict=True):
        marked: dict[tuple[str, str], str] = {}
        for measure in plan.table.measures if letters else ():
            systems = plan.table.values_of(measure)
            superior = find_rivals(systems, plan.table.keys, seed=seed, alpha=alpha)
            means = {name: exact_mean(each.values) for name, each in systems.items()}
            names = sorted(systems, key=lambda name: -means[name])
            assigned = assign_letters(names, superior).items()
            marked |= {(measure, name): letter for name, letter in assigned}
        items = {(item.measure, item.candidate): item for item in comparisons}
        tests.append(_Tests(plan, family, alpha, items, marked))
    return "\n".join(map(_render_table, tests, shown))


def assign_letters(names: Sequence[str], superior: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Letters of which two systems share one exactly where they are not shown to differ.

    Source: Piepho, J. Comput. Graph. Stat. 2004: a group splits where two of its members differ,
    and goes where another holds it.

    Args:
        names: The best first, who gets the first letter.
        superior: By system those that it is shown to be worse than.
    """
    groups = [frozenset(names)]
    for pair in (frozenset((low, high)) for low in names for high in superior[low]):
        both = [group for group in groups if pair <= group]
        groups = [group for group in groups if group not in both]
        for group in (group - {each} for group in both for each in sorted(pair)):
            if not any(group <= other for other in groups):
                groups = [*(other for other in groups if not other < group), group]
    order = sorted(groups, key=lambda group: sorted(map(names.index, group)))
    words = [*ascii_lowercase, *(a + b for a in ascii_lowercase for b in ascii_lowercase)]
    return {
        name: "".join(word for word, group in zip(words, order, strict=False) if name in group)
        for name in names
    }


def _render_table(tests: _Tests, columns: Sequence[str]) -> str:
    left, table = tests.plan.left, tests.plan.table
    primary = table.values_of(table.measures[0])
    means = {name: exact_mean(each.values) for name, each in primary.items()}
    names = sorted(tests.plan.wanted, key=lambda name: -means[name])
    lines = [
        rf"\begin{{tabular}}{{l{'l' * len(columns)}}}",
        r"  \toprule",
        _latex_row(["system", *(escape_latex(display_measure(name)) for name in columns)]),
        r"  \midrule",
        _latex_row(_cells(tests, table.baseline, columns)),
        *([r"  \midrule"] if names else []),
        *(_latex_row(_cells(tests, name, columns)) for name in names),
        r"  \bottomrule",
        r"\end{tabular}",
    ]
    caption = escape_latex(f"{left.name}: means over {pluralize(len(left.queries), 'query')}.")
    texts: list[str] = []
    base = escape_latex(tests.plan.table.baseline)
    if tests.comparisons:
        texts.append(
            rf"$\uparrow$, $\downarrow$: better, worse than {base}, each measure by itself."
        )
        texts.append(escape_latex(tests.family))
    if any(item.answer == "unjudged decide" for item in tests.comparisons.values()):
        texts.append("?: unjudged documents decide.")
    if tests.letters:
        texts.append(
            "Systems that share a letter in a column are not shown to differ, over all pairs."
        )
    notes = " ".join(texts)
    return _wrap_latex(lines, caption, label=make_safe_name(left.name), notes=notes)


def _cells(tests: _Tests, system: str, columns: Sequence[str]) -> Iterator[str]:
    """The name of a system, and a cell a column."""
    primary = tests.comparisons.get((tests.plan.table.measures[0], system))
    kinds = (DIFFERENCE, interval_column(tests.alpha), p_column(tests.alpha))
    differences = dict(zip(DIFFERENCE_COLUMNS, kinds, strict=True))
    yield escape_latex(system)
    for column in columns:
        if column not in differences:
            item = tests.comparisons.get((column, system))
            letters = tests.letters.get((column, system), "")
            marks = [MARKS.get(item.answer or "", "") if item else ""]
            marks += [rf"\mathrm{{{letters}}}"] if letters else []
            mean = exact_mean(tests.plan.table.systems[system][column].values)
            above = " ".join(filter(None, marks))
            yield (f"{format_number(mean)}$^{{{above}}}$" if above else format_number(mean))
        elif primary is None:
            yield "--"
        else:
            yield escape_latex(LATEX_MINUS.sub("−", differences[column].cell(primary)))


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is; a control character appears as ``\n`` or ``\x1b``."""
    marked = LATEX_SPACES.sub("\1", LATEX_LIGATURES.sub("\0", escape_control_chars(text)))
    escaped = LATEX_SPECIAL_PATTERN.sub(lambda match: LATEX_SPECIAL[match[0]], marked)
    return escaped.replace("\0", "{}").replace("\1", "\\ ")


def render_latex(table: Table, caption: str, *, label: str) -> str:
    r"""A ``table`` with caption, label, rules of booktabs and the notes below.

    The baseline is bold. Reference rows are in italics, below a rule.

    Args:
        table: What to print.
        caption: Stands above it.
        label: For ``\ref``, below ``tab:``; letters, digits and few marks.
    """
    notes = " ".join(map(escape_latex, table.notes))
    lines: list[str] = []
    alignment = "".join("l" if column.is_text else "r" for column in table.columns)
    lines.append(rf"\begin{{tabular}}{{{alignment}}}")
    lines.append(r"  \toprule")
    lines.append(_latex_row([escape_latex(column.header) for column in table.columns]))
    lines.append(r"  \midrule")
    before: Tone = "reference"
    for row in table.rows:
        if row.tone == "reference" != before:
            lines.append(r"  \midrule")
        before = row.tone
        command = {"baseline": r"\textbf", "reference": r"\emph"}.get(row.tone)
        cells = []
        for cell, column in zip(row.cells, table.columns, strict=True):
            text = escape_latex(cell if column.is_text else LATEX_MINUS.sub("−", cell))
            cells.append(f"{command}{{{text}}}" if command and text else text)
        lines.append(_latex_row(cells))
    lines.append(r"  \bottomrule")
    lines.append(r"\end{tabular}")
    return _wrap_latex(lines, escape_latex(caption), label=label, notes=notes)


def _wrap_latex(lines: Iterable[str], caption: str, *, label: str, notes: str = "") -> str:
    """A ``table`` around the lines of a ``tabular``; caption and notes are LaTeX."""
    whole = (
        f"% fusion-bench {__version__}; needs \\usepackage{{booktabs}}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{caption}}}",
        rf"  \label{{tab:{label}}}",
        *(f"  {line}" for line in lines),
        *((r"  \par\smallskip", rf"  {{\footnotesize {notes}\par}}") if notes else ()),
        r"\end{table}",
    )
    return "\n".join(whole) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    """A row of cells that are LaTeX."""
    return rf"  {' & '.join(cells)} \\"


def render_latex_tables(page: Page, stem: str) -> dict[str, str]:
    """File name → LaTeX of all tables of a page, numbered in its order; folded sections included.

    Args:
        page: Of any command.
        stem: What the file names begin with, such as ``gate``.
    """
    tables = [(section.title, table) for section in page.sections for table in section.tables]
    width = max(2, len(str(len(tables))))
    files: dict[str, str] = {}
    for i, (section, table) in enumerate(tables, 1):
        name = f"{stem}-{i:0{width}}-{make_safe_name(table.title)}"
        caption = f"{table.title} ({section})" if section else table.title
        files[f"{name}.tex"] = render_latex(table, caption, label=name)
    return files
