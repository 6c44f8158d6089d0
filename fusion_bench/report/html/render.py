"""A page of the page model as one HTML file: its script, its style, its data.

The modules in ``assets/js`` are ordinary ES modules. A page that is opened from disk can load none,
so they are joined into one script: each becomes a function that returns what it exports, after the
modules that it imports.

The most serious warning of a section stands first and open, the others fold into one line. What
lint says is folded too. Everything else is a statement.

What a reader needs stands in the page as HTML, so that it reads without script and prints. With
script, views drawn from the data take the place of the tables. Every text is escaped; control
characters and those that turn the direction of text are shown as codes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fusion_bench.config.yaml_files import format_yaml
from fusion_bench.report.data_warnings import sort_by_severity
from fusion_bench.report.glossary import list_used
from fusion_bench.report.page import (
    LINT,
    MAX_COLUMNS,
    WHAT_TO_DO,
    Finding,
    Page,
    Picture,
    Section,
    Table,
    YamlBlock,
)
from fusion_bench.util.formatting import escape_control_chars, pluralize

if TYPE_CHECKING:
    from jinja2 import Template


#: A whole statement, on one line or several.
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|const|class|let) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Asset:
    """A text that stands inline in a page.

    Attributes:
        text: As it stands between the tags.
        source: What allows it in a Content-Security-Policy: ``'sha256-…'``.
    """

    text: str

    @property
    def source(self) -> str:
        """The hash that a browser computes of it."""
        digest = hashlib.sha256(self.text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"


def read_asset(name: str) -> str:
    """The text of a file in ``assets``."""
    return (files("fusion_bench.report.html") / "assets" / name).read_text(encoding="utf-8")


@cache
def page_style() -> Asset:
    """The style of every page."""
    return Asset(read_asset("page.css"))


@cache
def page_script() -> Asset:
    """The main module and all that it imports, as one script in strict mode."""
    texts: dict[str, str] = {}
    _add_module("main", texts)
    return Asset(f'(() => {{\n"use strict";\n{"".join(texts.values())}}})();\n')


def _add_module(name: str, texts: dict[str, str]) -> None:
    """Add a module as a function, after those that it imports."""
    source = read_asset(f"js/{name}.js")
    for _, imported in IMPORT.findall(source):
        if imported not in texts:
            _add_module(imported, texts)
    exported = ", ".join(word for _, word in EXPORT.findall(source))
    body = EXPORT.sub(r"\1 \2", IMPORT.sub(r"const \1 = \2_module;\n", source))
    texts[name] = f"const {name}_module = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


#: Level 6 takes three times as long and saves 7 %.
LEVEL = 4


def pack_json(data: object) -> str:
    """JSON, compressed by gzip, in Base64: letters, digits, ``+``, ``/`` and ``=`` only.

    The same data give the same text.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), LEVEL, mtime=0)).decode("ascii")


def warnings_of(section: Section) -> list[Finding]:
    """What speaks against the numbers, the most serious first, without lint's warnings."""
    return sort_by_severity(finding for finding in section.findings if _is_alert(finding))


def lint_of(section: Section) -> list[Finding]:
    """What lint says: warnings, then notes."""
    lines = [finding for finding in section.findings if _is_lint(finding)]
    return sorted(lines, key=lambda finding: finding.tone != "warning")


def statements_of(section: Section) -> list[Finding]:
    """All other findings."""
    return [each for each in section.findings if not (_is_alert(each) or _is_lint(each))]


def cell_class(index: int, table: Table) -> str:
    """The classes of a column's cells; ``extra`` = behind the switch of a table of many columns."""
    column, number = table.columns[index], "number-cell"
    required = [i for i, each in enumerate(table.columns) if not each.is_optional][:MAX_COLUMNS]
    is_wide = len(table.columns) > MAX_COLUMNS and not table.is_grid
    return " ".join(
        filter(
            None,
            (
                "" if column.is_text else number,
                "extra" if is_wide and index not in required else "",
            ),
        )
    )


def _is_lint(finding: Finding) -> bool:
    return finding.key.startswith(LINT)


def _is_alert(finding: Finding) -> bool:
    return finding.tone == "warning" and not _is_lint(finding)


#: Nothing is fetched. What is inline is allowed by its hash.
POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; "
    "form-action 'none'"
)
#: Keys of the sections that have views begin so.
MOUNTED = ("collection ", "checks")


def render_html(page: Page, data: Mapping[str, Any] | None = None) -> str:
    """The whole page.

    Args:
        page: What it says.
        data: What its views show; see :mod:`fusion_bench.report.html.pages`. None = it
            has no views.
    """
    script, style = page_script(), page_style()
    parts = (part for section in page.sections for part in section.parts)
    blocks = (format_yaml(part.data) for part in parts if isinstance(part, YamlBlock))
    return _template().render(
        page=page,
        what_to_do=WHAT_TO_DO,
        terms=list_used("".join(blocks)),
        packed="" if data is None else pack_json(data),
        script=script.text,
        style=style.text,
        policy=POLICY.format(script=script.source, style=style.source),
    )


@cache
def _template() -> Template:
    """The template; Jinja is imported only where a page is made."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_output,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["yaml_lines"] = yaml_lines
    environment.tests["table"] = lambda part: isinstance(part, Table)
    environment.tests["figure"] = lambda part: isinstance(part, Picture)
    environment.tests["data"] = lambda part: isinstance(part, YamlBlock)
    environment.tests["mounted"] = lambda key: key.startswith(MOUNTED)
    environment.filters["warnings"] = warnings_of
    environment.filters["lint"] = lint_of
    environment.filters["statements"] = statements_of
    environment.filters["cell_class"] = cell_class
    environment.filters["count"] = pluralize
    return environment.get_template("page.html.j2")


def _escape_output(value: object) -> object:
    """Plain text without control characters; Jinja escapes what HTML has a meaning for."""
    from markupsafe import Markup

    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_control_chars(value)
    return value


def yaml_lines(data: object) -> list[str]:
    """Data as lines of YAML."""
    return format_yaml(data).rstrip("\n").split("\n")
