"""A page of the page model as one HTML file.

What a reader needs stands in the page as HTML, so that it reads without script and prints. With
script, views drawn from the data take the place of the tables. Every text is escaped; control
characters and those that turn the direction of text are shown as codes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from fusion_bench.report.html.assets_text import page_script, page_style, read_asset
from fusion_bench.report.html.finding_groups import (
    first_sentence,
    lint_of,
    statements_of,
    warnings_of,
)
from fusion_bench.report.html.packed_data import pack_json
from fusion_bench.report.page import Figure, Page, Table, YamlBlock
from fusion_bench.util.formatting import escape_control_chars, pluralize
from fusion_bench.util.yaml_text import format_yaml

if TYPE_CHECKING:
    from jinja2 import Template

#: Nothing is fetched. What is inline is allowed by its hash, and figures by their scheme.
POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
#: Keys of the sections that have views begin so.
MOUNTED = ("collection ", "checks")
MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


def render_html(
    page: Page,
    data: Mapping[str, Any] | None = None,
    *,
    number: str = "",
    figures: Mapping[str, bytes] | None = None,
) -> str:
    """The whole page.

    Args:
        page: What it says.
        data: What its views show; see :mod:`fusion_bench.report.html.evaluation_data`. None = it
            has no views.
        number: The outcome as one number, beside the title; empty = none.
        figures: File name → contents of the figures; one that is missing is left out.
    """
    script, style = page_script(), page_style()
    return _template().render(
        page=page,
        number=number,
        figures={name: _data_address(name, content) for name, content in (figures or {}).items()},
        packed="" if data is None else pack_json(data),
        script=script.text,
        style=style.text,
        policy=POLICY.format(script=script.source, style=style.source),
    )


def _data_address(name: str, content: bytes) -> str:
    kind = MEDIA_TYPES[name.rpartition(".")[2]]
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


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
    environment.tests["figure"] = lambda part: isinstance(part, Figure)
    environment.tests["data"] = lambda part: isinstance(part, YamlBlock)
    environment.tests["mounted"] = lambda key: key.startswith(MOUNTED)
    environment.filters["warnings"] = warnings_of
    environment.filters["lint"] = lint_of
    environment.filters["statements"] = statements_of
    environment.filters["first_sentence"] = first_sentence
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
