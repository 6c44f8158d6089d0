"""The pictures of the site: which script draws them, and for which values of which parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from docs.website.examples import OPTIONS
from docs.website.page import ROOT, format_code, format_flow
from fusion_bench.config.parameters import Parameter, Value
from fusion_bench.methods.fuse import Trainable, fusions

GALLERY = "docs/gallery"
#: Panels of one picture.
MOST_PANELS = 3
#: Of the many normalizers, those that a picture compares.
NORMALIZERS = ("none", "min_max", "z_score", "rank")
#: What has nothing to draw: another method does the work.
TEXT_ONLY = frozenset({"by_source", "none"})
#: Trained method → the settings that its picture compares; its defaults where it is not here.
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "logistic_regression": [{"l2": 0.01}, {"l2": 1.0}, {"l2": 1000.0}],
    "lambdamart": [{"trees": 10}, {}],
    "prob_fuse": [{"segments": 5}, {"segments": 25}, {"segments": 100}],
    "slide_fuse": [{"window": 0}, {"window": 2}, {"window": 10}],
    "seg_fuse": [{"normalize": "min_max"}, {"normalize": "rank"}],
}
#: Parameters that many methods share; a picture shows them after a method's own.
LAST = ("normalize", "missing", "weights", "alpha")
#: What the picture of ``rrf_v2`` compares.
BONUSES: tuple[dict[int, float], ...] = ({}, {1: 0.05, 3: 0.02}, {1: 0.01, 5: 0.005})
RETRIEVAL_TERMS = ("fused", "fused_max_possible", "fused_min_max", "reciprocal_rank")

#: Title of a panel → label of each of its lines → its options.
Changes = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Picture:
    """One call of a script's ``draw``.

    Attributes:
        script: Name of the script in the gallery.
        path: Of the image, in the folder of files.
        arguments: Of ``draw``.
        depth: Folders above the page that shows it.
    """

    script: str
    path: str
    arguments: tuple[Any, ...] = field(default=())
    depth: int = 1

    @property
    def code(self) -> str:
        """The script."""
        return (ROOT / GALLERY / f"{self.script}.py").read_text(encoding="utf-8")

    @property
    def description(self) -> tuple[str, str]:
        """Title and caption, from the script's docstring."""
        text = ast.get_docstring(ast.parse(self.code)) or ""
        title, _, caption = text.partition("\n\n")
        return title, " ".join(caption.split())

    def to_markdown(self) -> str:
        """The image, its caption, and the script behind a heading that opens."""
        title, caption = self.description
        summary = "<details><summary>The script that draws it</summary>"
        return "\n".join(
            [
                f"![{title}]({'../' * self.depth}{self.path})\n",
                f"{title} {caption}\n",
                f"{summary}\n",
                format_code(self.code, "python"),
                "</details>\n",
            ]
        )


def picture_of(kind: str, name: str, space: Sequence[Parameter]) -> Picture | None:
    """The picture of a method's parameters; None = there is none."""
    path = f"pictures/{kind}-{name}.svg"
    if name in TEXT_ONLY:
        return None
    if kind == "fusion" and issubclass(fusions.load_built_in()[name], Trainable):
        return Picture("trained_scores", path, (name, SETTINGS.get(name, [{}])))
    if kind == "fusion":
        defaults = fusions.build(name).model_dump()
        return Picture("score_by_rank", path, (name, list_changes(space, defaults)))
    if kind == "normalize":
        return Picture("normalized_scores", path, (name, _normalizer_changes(name)))
    if kind == "blend":
        return Picture("blended_scores", path, (name, _blend_changes(name)))
    return None


def list_changes(space: Sequence[Parameter], defaults: Mapping[str, Any]) -> Changes:
    """The parameters of a search that a picture shows, with a few values of each.

    Args:
        space: What can be tuned.
        defaults: The default of each parameter.
    """
    heads: dict[str, Parameter] = {}
    for parameter in space:
        if not parameter.when:
            heads.setdefault(parameter.path.split(".")[0], parameter)
    drawn = [heads[head] for head in sorted(heads, key=lambda head: head in LAST) if head != "lo"]
    changes = dict(_list_lines(parameter, defaults) for parameter in drawn[:MOST_PANELS])
    return changes or {"defaults": {"defaults": {}}}


def _list_lines(
    parameter: Parameter, defaults: Mapping[str, Any]
) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """Title and lines of the panel of a parameter."""
    head = parameter.path.split(".")[0]
    if head == "bonus":
        return head, {format_flow(bonus): {head: bonus} for bonus in BONUSES}
    default = defaults.get(head)
    values = choose_values(parameter, float(default) if isinstance(default, int | float) else 1.0)
    title = parameter.path.removesuffix(".method")
    return title, {str(value): _nest(parameter.path, value) for value in values}


def choose_values(parameter: Parameter, center: float) -> Sequence[Value]:
    """A few of the choices, or values below and above a number that lie in the range.

    Args:
        parameter: A choice, an int or a float.
        center: The default.
    """
    if parameter.kind == "choice":
        known = [value for value in parameter.choices if value in NORMALIZERS]
        return [*(known or parameter.choices)][:4]
    low, high = parameter.bounds
    if parameter.log:
        values = [center / 6, center / 2, center, center * 3]
    elif low < center < high:
        values = [(low + center) / 2, center, (center + high) / 2, high]
    else:
        values = [low + (high - low) * share for share in (0.0, 0.25, 0.5, 1.0)]
    rounded = [float(f"{min(max(value, low), high):.2g}") for value in values]
    distinct = [*dict.fromkeys(rounded)]
    return [round(value) if parameter.kind == "int" else value for value in distinct]


def _nest(path: str, value: Value) -> dict[str, Any]:
    """The option of a method that a path means: ``weights.bm25`` is an entry of a mapping."""
    head, _, key = path.partition(".")
    if not key:
        return {head: value}
    return {head: value if key == "method" else {key: value}}


def _normalizer_changes(name: str) -> Changes:
    options: dict[str, list[dict[str, Any]]] = {
        "dbsf": [{"clip": True}, {"clip": False}],
        "theoretical_min_max": [{"lo": {"bm25": lo}} for lo in (-5, 0, 2)],
        "logistic": [{}, {"alpha": 0.1}, {"alpha": 1.0}, {"base_rate": 0.1}],
    }
    lines = options.get(name, [{}])
    return {name: {format_flow(line).strip("{}") or "defaults": line for line in lines}}


def _blend_changes(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Title of a panel → the options of the blend."""
    if name == "replace":
        return {"replace": {}}
    given = {key: value for key, value in OPTIONS.get(name, {}).items() if key in ("beta",)}
    return {term: {**given, "retrieval": term} for term in RETRIEVAL_TERMS}
