"""What a system does, in words made from its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from pydantic import ValidationError

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import Blend
from fusion_bench.methods.blend.formulas import Linear, PositionAware, RerankBlend
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RankTermFusion
from fusion_bench.methods.fuse.weighted_score import WeightedScore

#: Normalizer → the scores that it makes.
SCORES: Final = {"none": "raw scores", "min_max": "min-max scores", "z_score": "z-scores"}
#: Value of ``missing`` → what counts for a list that did not return a document.
MISSING: Final = {
    "skip": "over the lists with the document",
    "zero": "0 for a list without the document",
    "min": "the least score of a list without the document",
}
#: The retrieval term of a blend.
RETRIEVAL: Final = {
    "fused": "the fused score",
    "fused_max_possible": "the fused score ÷ its greatest possible value",
    "fused_min_max": "the min-max fused score",
    "reciprocal_rank": "1/rank",
}
#: Parameters that have words of their own.
WORDED: Final = frozenset({"method", "k", "weights", "bonus", "alpha"})
#: Of more names the last ones are counted.
MAX_NAMES: Final = 8


def describe_system(system: System) -> str:
    """Return what a system does: ``RRF (k 60) of a and b, first 50 reordered by ltr``."""
    is_fused = len(system.runs) > 1
    cut = "" if system.depth is None else f"each list cut at {system.depth}"
    if isinstance(system.depth, Mapping):
        cut = join_names([f"{name} cut at {each}" for name, each in system.depth.items()])
    collapsed = ""
    if (collapse := system.collapse) is not None:
        where = "each list" if collapse.place == "each list" else f"the {collapse.place} list"
        k = f" (k {shorten(collapse.k)})" if collapse.score == "rrf" else ""
        collapsed = f"{where} collapsed to documents by {collapse.score}{k}"
        if collapse.keep is not None:
            collapsed = f"{where} collapsed to {collapse.keep} of the chunks of each document"
    parts = [
        _describe_fusion(system.fusion, system.runs) if is_fused else f"the list {system.runs[0]}",
        cut,
        *_describe_blend(system.blend),
        collapsed,
        "" if system.class_key is None else f"parameters by {system.class_key.title}",
        "" if system.min_relevance is None else f"from a score of {shorten(system.min_relevance)}",
        "" if system.top_k is None else f"cut at {system.top_k}",
        "" if system.dialect is None else f"as {system.dialect} computes it",
    ]
    text = ", ".join(part for part in parts if part)
    if text == parts[0] and not is_fused:
        text += " alone"
    stages = (system.stages or {}).items()
    return text + "".join(f"; {name}: {describe_system(stage)}" for name, stage in stages)


def shorten(value: object) -> str:
    """Return a fraction in four digits without its leading zero, anything else as text."""
    if not isinstance(value, float):
        return str(getattr(value, "method", value))
    return f"{value:.4g}".replace("0.", ".", 1) if 0 < abs(value) < 1 else f"{value:.4g}"


def join_names(names: Sequence[str]) -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    rest = len(names) - MAX_NAMES
    shown = [*names] if rest <= 1 else [*names[:MAX_NAMES], f"{rest} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def label_ranks(first: int, last: int) -> str:
    """Return ``rank 1`` or ``ranks 2–3``."""
    return f"rank {first}" if first == last else f"ranks {first}–{last}"


def list_by_rank(values: Mapping[int, float]) -> Iterator[tuple[str, float]]:
    """Yield the ranks and the value of each entry of a table by last rank."""
    first = 1
    for last, value in values.items():
        yield label_ranks(first, last), value
        first = last + 1


def _describe_fusion(fusion: Fusion, runs: Sequence[str]) -> str:
    """Method, numbers and lists, then what each list and each place counts."""
    known, words, title = WORDED, [], fusion.method
    k = getattr(fusion, "k", None)
    numbers = [] if k is None else [f"k {_format_by_name(k)}"]
    if isinstance(fusion, RankTermFusion):
        title = "RRF"
    elif isinstance(fusion, WeightedScore):
        known = WORDED | {"normalize", "missing"}
        normalizer = shorten(fusion.normalize)
        title = f"mean of {SCORES.get(normalizer, f'{normalizer} scores')}"
        words.append(MISSING[fusion.missing])
    stated = fusion.model_dump(exclude_defaults=True)  # of a plugin, its origin too
    numbers += [
        f"{name.replace('_', ' ')} {_format_by_name(getattr(fusion, name))}"
        for name in stated
        if name not in known and name in type(fusion).model_fields
    ]
    weights = getattr(fusion, "weights", {}) or {}
    words[:0] = [f"{name} ×{shorten(weight)}" for name, weight in weights.items() if weight != 1]
    if (alpha := getattr(fusion, "alpha", None)) is not None:
        words.insert(0, f"semantic ×{shorten(alpha)} and the other ×{shorten(1 - alpha)}")
    bonus = [f"{shorten(v)} at {ranks}" for ranks, v in list_by_rank(getattr(fusion, "bonus", {}))]
    words += [f"bonus {join_names(bonus)}"] if bonus else []
    stated_numbers = f" ({', '.join(numbers)})" if numbers else ""
    return ", ".join((f"{title}{stated_numbers} of {join_names(runs)}", *words))


def _format_by_name(value: object) -> str:
    """A number, or several by the name of a list."""
    if not isinstance(value, Mapping):
        return shorten(value)
    return join_names([f"{shorten(each)} for {name}" for name, each in value.items()])


def _describe_blend(blend: Blend) -> Iterator[str]:
    """What the reranker does to the first documents; nothing without one."""
    if not isinstance(blend, RerankBlend):
        yield "" if blend.method == "none" else f"blended by {blend.method}"
        return
    by, retrieval = blend.reranker, RETRIEVAL.get(getattr(blend, "retrieval", ""), "")
    if isinstance(blend, Linear):
        by = f"{shorten(blend.beta)} × {by}"
        if blend.beta < 1:
            by += f" + {shorten(1 - blend.beta)} × {retrieval}"
    elif isinstance(blend, PositionAware):
        shares = [f"{shorten(share)} at {ranks}" for ranks, share in list_by_rank(blend.tiers)]
        shares.append(f"{shorten(blend.rest)} below")
        by = f"{by} and {retrieval}, which weighs {join_names(shares)}"
    elif blend.method != "replace":
        by = f"{by} ({blend.method})"
    rest = ", the rest dropped" if blend.tail == "drop" else ""
    yield f"first {blend.depth} reordered by {by}{rest}"


def describe_config(name: str, config: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return ``NAME: what its system does.``; nothing if the configuration is of a later version.

    Args:
        name: Of the system.
        config: Resolved, or as in YAML; None = not known.
    """
    with suppress(ValidationError, ConfigError):
        if config is not None:
            system = System.model_validate({**config, "name": name})
            return (f"{name}: {describe_system(system)}.",)
    return ()
