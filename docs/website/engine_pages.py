"""A page for each engine: dialect, section of ``docs/reference/engines.md``, what is exported."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from docs.website.docstrings import parse_docstring, to_markdown
from docs.website.examples import BASELINE, spell_out
from docs.website.page import (
    ROOT,
    Page,
    format_code,
    format_contents,
    format_table,
    format_yaml,
)
from docs.website.parameters import format_parameters
from docs.website.sections import raise_headings, split_sections
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.method_table import describe_method
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion

ORIGIN = "docs/reference/engines.md"
#: Of the pages in Sphinx's source folder.
FOLDER = "reference"
#: The section of the dialects that follow documents of one shop.
FOUNDING = "Founding documents"
RUNS = ("bm25", "dense")
ROLES = {"bm25": frozenset({"keyword"}), "dense": frozenset({"question", "semantic"})}
#: Suffix of a written file → what colors its code.
LANGUAGES = {".json": "json", ".py": "python", ".sql": "sql", ".ts": "typescript", ".java": "java"}


def engine_paths() -> dict[str, str]:
    """Title of an engine → path of its page."""
    return {
        dialect.title: f"{FOLDER}/engines/{name}.md"
        for name, dialect in dialects.load_built_in().items()
    }


def build_engine_pages() -> Iterator[Page]:
    """The page of all engines, and the page of each."""
    intro, sections = split_sections((ROOT / ORIGIN).read_text(encoding="utf-8"))
    founding, founders = split_sections(raise_headings(sections.pop(FOUNDING)))
    sections |= founders
    built_in = dialects.load_built_in()
    order = sorted(built_in.values(), key=lambda dialect: [*sections].index(dialect.title))
    tables = {
        is_founding: _list_engines(
            each for each in order if (each.title in founders) == is_founding
        )
        for is_founding in (False, True)
    }
    contents = format_contents((f"engines/{dialect.name}" for dialect in order), is_hidden=True)
    parts = [intro, "## Your engine\n", tables[False], f"## {FOUNDING}\n", founding, tables[True]]
    yield Page(f"{FOLDER}/engines.md", "\n".join([*parts, contents]))
    for dialect in order:
        yield Page(
            f"{FOLDER}/engines/{dialect.name}.md", _build_page(dialect, sections[dialect.title])
        )


def _list_engines(listed: Iterable[type[Dialect]]) -> str:
    """The table of some engines, each with a link to its page."""
    rows = [
        (
            f"[{dialect.title}](engines/{dialect.name}.md)",
            f"`{dialect.name}`",
            dialect.version,
            dialect.checked,
            ", ".join(f"`{name}`" for name in dialect.fusions().load_built_in()),
        )
        for dialect in listed
    ]
    return format_table(("engine", "dialect", "version", "last check", "methods"), rows)


def _build_page(dialect: type[Dialect], section: str) -> str:
    module = importlib.import_module(dialect.__module__)
    summary = parse_docstring(module.__doc__ or "").summary.partition(": ")[2]
    command = f"fusion-bench export experiments/mine.yaml --to {dialect.name} --system mine"
    parts = [
        f"# {dialect.title}\n",
        format_code(command, "sh"),
        f"{summary[:1].upper()}{summary[1:]}\n",
        section,
        "## An experiment\n",
        "Save it as `mine.yaml`, and run `fusion-bench eval mine.yaml`: it compares the "
        "engine's default with plain RRF.\n",
        format_code(format_yaml(_example_experiment(dialect)), "yaml"),
        "## Methods\n",
        *(part for method in dialect.methods for part in _describe_method(method)),
        "## What `export` writes\n",
        *_describe_export(dialect),
    ]
    if dialect.ignores:
        parts += ["## What it cannot do\n", *(f"- {to_markdown(text)}" for text in dialect.ignores)]
    return "\n".join([*parts, ""])


def _example_experiment(dialect: type[Dialect]) -> dict[str, Any]:
    method = dialect.methods[0]
    system = {
        "dialect": dialect.name,
        "runs": list(RUNS),
        "fusion": spell_out(method, {}),
        **{key: dialect.defaults[key] for key in ("depth", "top_k") if key in dialect.defaults},
    }
    systems = {"plain rrf": BASELINE, "mine": system}
    return {
        "dataset": "attack",
        "measures": ["nDCG@10"],
        "baseline": "plain rrf",
        "systems": systems,
    }


def _describe_method(method: type[Fusion]) -> Iterator[str]:
    name = str(method.model_fields["method"].default)
    entry = describe_method(name, method)
    described = parse_docstring(method.__doc__ or "")
    yield f"### {name}\n"
    yield format_code(entry["formula"])
    yield f"In full: {described.summary}\n"
    yield from (f"{paragraph}\n" for paragraph in described.prose)
    if entry["source"]:
        yield f"**Source.** {to_markdown(entry['source'])}\n"
    yield format_parameters(method, entry["parameters"], method.model_validate({}).space(RUNS))


def _describe_export(dialect: type[Dialect]) -> Iterator[str]:
    """The files of a system of the engine's default method, and what to do with them."""
    yield "Of the default method on these two lists, with `depth: 50` and `top_k: 10`:\n"
    keys = {"name": "mine", "runs": RUNS, "dialect": dialect.name, "depth": 50, "top_k": 10}
    translation = dialect.translate(System.model_validate(keys), ROLES)
    if translation.system is None:
        raise ValueError(f"{dialect.name}: its own default is unsupported: {translation.reasons}")
    configuration = dialect.write_by_role(translation.system, ROLES)
    for file, text in configuration.files.items():
        yield f"`{file}`:\n"
        yield format_code(text, LANGUAGES.get(PurePosixPath(file).suffix, "text"))
    yield from (f"- {to_markdown(note)}" for note in configuration.notes)
    yield ""
