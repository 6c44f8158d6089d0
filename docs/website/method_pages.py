"""A page for each fusion method, normalizer and blend, from its class."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from docs.website.docstrings import parse_docstring
from docs.website.examples import example_experiment, example_options
from docs.website.page import Page, format_code, format_contents, format_table, format_yaml
from docs.website.parameters import format_parameters
from docs.website.pictures import Picture, picture_of
from fusion_bench.config.models import StrictModel
from fusion_bench.config.parameters import Parameter
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.experiment.method_table import MethodEntry, list_methods
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import Fusion, Trainable, fusions
from fusion_bench.methods.normalize import normalizers

#: The sources of every example.
SOURCES = ("bm25", "dense")


class Kind(NamedTuple):
    """One registry of methods.

    Attributes:
        key: What the table of methods calls it.
        folder: Of its pages.
        title: Of its list of pages.
        noun: What one of them is.
        about: What all of them do, with a link to the page that explains them.
        registry: Where they are registered.
    """

    key: str
    folder: str
    title: str
    noun: str
    about: str
    registry: MethodRegistry[Any]


KINDS = (
    Kind(
        "fusion",
        "fuse",
        "Fusion methods by name",
        "Fusion method",
        "A fusion method gives every document that some list returned one score. "
        "[Fusion methods](../reference/methods.md) compares them.",
        fusions,
    ),
    Kind(
        "normalize",
        "normalize",
        "Normalizers",
        "Normalizer",
        "A normalizer puts the scores of one list of one query on a common scale. Fusions of "
        "scores take one: `normalize: NAME`.",
        normalizers,
    ),
    Kind(
        "blend",
        "blend",
        "Blends with a reranker",
        "Blend",
        "A blend turns the fused list and the scores of a reranker into the final list. "
        "[Reranking](../reranking.md) says where these scores come from.",
        blends,
    ),
)


def build_method_pages() -> Iterator[tuple[Page, Picture | None]]:
    """Every page with the picture that it shows, and the list of pages of each kind."""
    entries = list_methods()
    for kind in KINDS:
        models = kind.registry.load_built_in()
        known = [entry for entry in entries[kind.key] if entry["method"] in models]
        yield _build_list(kind, known), None
        for entry in known:
            yield _build_page(kind, entry, models[entry["method"]])


def _build_list(kind: Kind, entries: Sequence[MethodEntry]) -> Page:
    models = kind.registry.load_built_in()
    rows = [
        (
            f"[`{entry['method']}`]({entry['method']}.md)",
            f"`{entry['formula']}`",
            entry["source"] or parse_docstring(models[entry["method"]].__doc__ or "").source,
        )
        for entry in entries
    ]
    text = "\n".join(
        [
            f"# {kind.title}\n",
            f"{kind.about}\n",
            format_table(("method", "what it computes", "source"), rows),
            format_contents((entry["method"] for entry in entries), is_hidden=True),
        ]
    )
    return Page(f"{kind.folder}/index.md", text)


def _build_page(
    kind: Kind, entry: MethodEntry, model: type[StrictModel]
) -> tuple[Page, Picture | None]:
    name, described = entry["method"], parse_docstring(model.__doc__ or "")
    summary = _strip(described.summary)
    experiment = example_experiment(kind.key, name, model)
    space = list_space(kind.key, model, name)
    picture = picture_of(kind.key, name, space)
    parts = [
        f"# {name}\n",
        f"{kind.noun}:\n",
        format_code(entry["formula"]),
        *([f"In full: {described.summary}\n"] if summary != _strip(entry["formula"]) else []),
        *(f"{paragraph}\n" for paragraph in described.prose),
        f"**Source.** {described.source or entry['source']}\n",
        *([f"**Example.** {described.example}\n"] if described.example else []),
        "## In an experiment\n",
        "Save it as `mine.yaml`, and run `fusion-bench eval mine.yaml`:\n",
        format_code(format_yaml(experiment), "yaml"),
        "## Parameters\n",
        format_parameters(model, entry["parameters"], space),
    ]
    if picture is not None:
        parts += ["## What the parameters do\n", picture.to_markdown()]
    if issubclass(model, Fusion):
        parts += ["## What always holds\n", *_describe_contract(model(method=name))]
    return Page(f"{kind.folder}/{name}.md", "\n".join(parts)), picture


def _strip(formula: str) -> str:
    """The formula without what says nothing: blanks, a full stop, Markdown's backslashes."""
    return re.sub(r"[\s\\]|\.$", "", formula)


def list_space(kind: str, model: type[StrictModel], name: str) -> tuple[Parameter, ...]:
    """What ``tune`` searches of a method with its defaults, on two sources."""
    method: Any = model.model_validate({"method": name, **example_options(name, model)})
    space: tuple[Parameter, ...] = method.space(SOURCES) if kind == "fusion" else method.space()
    return space


def _describe_contract(fusion: Fusion) -> Iterator[str]:
    """What the contract tests check of a fusion with its defaults."""
    scaling = "changes no rank" if fusion.weight_scale_invariant else "may change ranks"
    single = "comes out in its own order" if fusion.keeps_single_list else "may come out reordered"
    if "weights" in type(fusion).model_fields:
        yield f"- With the defaults, a common factor of all weights {scaling}."
    yield f"- A single list, ranked by its scores, {single}."
    if isinstance(fusion, Trainable):
        yield "- It learns from judgments; every query is scored out of fold."
    yield "- The order of the sources changes nothing.\n"
