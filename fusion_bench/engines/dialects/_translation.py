"""A system written down in the terms of an engine, with what is lost on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.collapse import Collapse, Place
from fusion_bench.experiment.dialect import Dialect, Fidelity, Translation
from fusion_bench.experiment.system import System, source_roles
from fusion_bench.methods.blend import Blend, RerankBlend
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import SEMANTIC, Fusion, weighted_score
from fusion_bench.methods.fuse.rrf import RRF, RRFv2
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.methods.normalize.linear import BySource


class EngineFusion(Fusion):
    """A method as an engine computes it."""

    def equivalent(self, _weights: dict[str, float], /) -> Fusion | None:
        """Our method that orders any lists as this one does; None = there is none.

        Args:
            _weights: Of each source as :meth:`source_weights` gives it, above 0; by name.
        """
        return None


class CanonicalFusion(weighted_score.DelegatedFusion, EngineFusion):
    """An engine's method whose scores are those of :attr:`canonical`."""

    def equivalent(self, _weights: dict[str, float], /) -> Fusion | None:
        """Our method."""
        return self.canonical

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): as our method weighs them."""
        return self.canonical.source_weights(sources, roles)

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): as for our method."""
        return self.canonical.display_scores(scores)

    @property
    def weight_scale_invariant(self) -> bool:
        """Whether the canonical method's ranks stay if all weights are scaled."""
        return self.canonical.weight_scale_invariant

    @property
    def keeps_single_list(self) -> bool:
        """Whether the canonical method keeps a single list as it is."""
        return self.canonical.keeps_single_list


#: Documents of a list that are fetched where a system has no ``depth``.
LONGEST_WINDOW = 10_000


@dataclass(frozen=True)
class ReciprocalRankSum:
    """Σ w/(k + rank) in numbers.

    Attributes:
        k: By source.
        weights: By source; above 0.
    """

    k: Mapping[str, float]
    weights: Mapping[str, float]

    @property
    def has_equal_weights(self) -> bool:
        """Whether all sources weigh the same."""
        return len(set(self.weights.values())) == 1


class UnsupportedError(Exception):
    """An engine has nothing like a system; the arguments are those of the translation."""


class Draft:
    """A translation that is being written.

    Attributes:
        dialect: The engine's dialect.
        system: The plain system that is translated: of one class of queries, without a blend.
        sources: The sources that take part.
        weights: Their weights as the fusion of ``system`` weighs them.
        fusion: The fusion in our terms, or an engine's that none of ours equals.
        blend: The blend, if it is part of the dialect.
        rerank_depth: How many documents the application's reranker reads; 0 = it has none.
        collapse: How chunks are collapsed, by the engine or by the application.
        fidelity: The best that is still possible.
        reasons: What is lost so far.
    """

    def __init__(
        self, dialect: type[Dialect], system: System, roles: Mapping[str, frozenset[str]]
    ) -> None:
        self.dialect = dialect
        self.fidelity: Fidelity = "exact"
        self.reasons: list[str] = []
        self.system = system = self._choose_class(system)
        all_roles = source_roles(system, roles)
        weights = system.fusion.source_weights(system.runs, [*all_roles.values()]).tolist()
        all_weights = dict(zip(system.runs, weights, strict=True))
        self.weights = {name: weight for name, weight in all_weights.items() if weight > 0}
        self.sources = tuple(self.weights)
        self.roles = {name: all_roles[name] for name in self.sources}
        self.fusion = system.fusion
        if isinstance(self.fusion, EngineFusion):
            self.fusion = self.fusion.equivalent(self.weights) or self.fusion
        self.is_of_dialect = system.dialect == dialect.name
        self.rerank_depth = 0
        self.blend: Blend = system.blend
        if not isinstance(self.blend, (NoBlend, *dialect.blends)):
            self.lose(
                f"blend: {self.blend.method!r} is not written: rerank the engine's results in the "
                "application"
            )
            self.rerank_depth = self.blend.depth if isinstance(self.blend, RerankBlend) else 0
            self.blend = NoBlend()
        self.collapse = self._choose_collapse(system.collapse)
        given, default = self.system.min_relevance, self.dialect.defaults.get("min_relevance")
        if given != default if self.is_of_dialect else given is not None:
            self.lose(
                f"min_relevance: {'none' if given is None else format(given, 'g')} is not written: "
                "drop the documents below it in the application"
            )
        if system.stages:
            listed = ", ".join(map(repr, system.stages))
            self.lose(
                f"stages: {listed}: a request fuses the lists of searches, not of other fusions",
                "unsupported",
            )

    def lose(self, reason: str, fidelity: Fidelity = "approximate") -> None:
        """Lower the fidelity, and say why."""
        order = get_args(Fidelity)
        self.fidelity = max(self.fidelity, fidelity, key=order.index)
        place = 0 if fidelity == "unsupported" else len(self.reasons)
        self.reasons.insert(place, reason)

    def note(self, remark: str) -> None:
        """Say what to know, without a loss."""
        self.reasons.append(remark)

    def _choose_class(self, system: System) -> System:
        key, classes = system.class_key, system.query_classes
        if key is None or classes is None:
            return system
        chosen = key.fallback if key.fallback in classes else classes[0]
        listed = ", ".join(classes)
        self.lose(
            f"{key.title}s: one request has one set of numbers, here those of {key.field} "
            f"{chosen!r}; write one request for each {key.field} and choose it in the application "
            f"({key.field}s: {listed})"
        )
        return system.of_class(chosen)

    def _choose_collapse(self, given: Collapse | None) -> Collapse | None:
        """How chunks are collapsed; without ``top_k`` where the application does it."""
        if given is None:
            return None
        dialect, is_written = self.dialect, self.dialect.can_collapse(given)
        if given.by == "id":
            self.lose(
                "collapse: by: id merges rows of one id, and an engine returns each id once",
                "unsupported",
            )
        if not is_written:
            rule = f" ({dialect.collapse_rule})" if dialect.collapse_rule else ""
            cut = "" if self.system.top_k is None else f", and cut the list at {self.system.top_k}"
            self.lose(f"collapse: not written{rule}: collapse chunks in the application{cut}")
            self.system = self.system.model_copy(update={"top_k": None})
        places: tuple[Place, ...] = dialect.collapse_places if is_written else ("reranked",)
        if isinstance(self.blend, NoBlend):  # then both places are one
            places = ("fused",) if self.rerank_depth else ("fused", "reranked")
        if given.place in places:
            return given
        self.lose(
            f"collapse.place: {places[0]} instead of {given.place}, because the engine fuses chunks"
            if given.place == "each list"
            else f"collapse.place: {places[0]} instead of {given.place}"
        )
        return given.model_copy(update={"place": places[0]})

    def find_reciprocal_ranks(self) -> ReciprocalRankSum | None:
        """The fusion as a sum of reciprocal ranks; None = it is none."""
        fusion = self.fusion
        if not isinstance(fusion, RRF | RRFv2):
            return None
        if isinstance(fusion, RRFv2) and any(fusion.bonus.values()):
            self.lose(f"bonus: {self.dialect.title} has none; it is left out")
        if fusion.normalize == "three_lists":
            self.lose("normalize: three_lists is left out: scores differ", "rank-equivalent")
        sources, roles = self.sources, [self.roles[name] for name in self.sources]
        constants = fusion.source_numbers("k", sources, roles).tolist()
        weights = fusion.source_weights(sources, roles).tolist()
        return ReciprocalRankSum(
            dict(zip(sources, constants, strict=True)), dict(zip(sources, weights, strict=True))
        )

    def find_score_sum(self) -> weighted_score.WeightedScore | None:
        """The fusion as Σ w·score with 0 where a score is missing; None = it is no such sum.

        Its normalizer is ``by_source`` only where the sources have different ones.
        """
        fusion = self.fusion
        if isinstance(fusion, weighted_score.DistributionBasedFusion):
            fusion = fusion.canonical
        if isinstance(fusion, weighted_score.TM2C2):
            fusion = fusion.canonical
        if not isinstance(
            fusion,
            weighted_score.WeightedScore | weighted_score.WeightedSum | weighted_score.CombSum,
        ):
            return None
        if not isinstance(fusion, weighted_score.CombSum) and fusion.missing != "zero":
            self.lose(
                f"missing: {fusion.missing!r} becomes 0: {self.dialect.title} adds nothing for a "
                "list that lacks the document"
            )
        scales = [self.normalizer_of(fusion.normalize, name) for name in self.sources]
        is_common = all(scale == scales[0] for scale in scales)
        normalize = scales[0] if is_common else fusion.normalize
        return weighted_score.WeightedScore(
            normalize=normalize, missing="zero", weights=self.weights
        )

    def normalizer_of(self, normalizer: Normalizer, source: str) -> Normalizer:
        """The normalizer of one source."""
        if not isinstance(normalizer, BySource):
            return normalizer
        keys = {source, *self.roles[source]}
        fitting = [scale for key, scale in normalizer.sources.items() if key in keys]
        return fitting[0] if fitting else normalizer.default

    def choose_rank_constant(self, numbers: ReciprocalRankSum, least: int, base: int = 1) -> int:
        """The engine's whole-numbered constant, the same for all sources.

        Args:
            numbers: The reciprocal ranks in our terms.
            least: The least constant that the engine takes.
            base: The rank of the first document in its formula.
        """
        distinct = set(numbers.k.values())
        wanted = sum(numbers.k.values()) / len(numbers.k) + 1 - base
        if len(distinct) > 1:
            self.lose(f"k: one for all lists instead of {_listed(numbers.k)}")
        constant = max(round(wanted), least)
        if len(distinct) == 1 and constant != wanted:
            self.lose(f"k: {constant + base - 1} instead of {distinct.pop():g}")
        return constant

    def choose_windows(
        self, *, by_source: bool = False, cut_to_window: bool = False, most: int = LONGEST_WINDOW
    ) -> dict[str, Any]:
        """``depth`` and ``top_k`` of the translated system.

        Args:
            by_source: Whether each list may have a window of its own.
            cut_to_window: Whether the engine returns at most a window of fused documents.
            most: The greatest window.
        """
        depth = self.system.depth
        given = dict(depth) if isinstance(depth, Mapping) else dict.fromkeys(self.sources, depth)
        given = {name: given.get(name) for name in self.sources}
        if None in given.values():
            self.note(f"depth: none is set, so up to {most} documents of a list are fetched")
        if any(cut is not None and cut > most for cut in given.values()):
            self.lose(f"depth: {self.dialect.title} fetches at most {most} documents of a list")
        cuts = {name: min(cut or most, most) for name, cut in given.items()}
        if len(set(cuts.values())) > 1 and not by_source:
            self.lose(f"depth: one for all lists instead of {_listed(cuts)}")
            cuts = dict.fromkeys(cuts, max(cuts.values()))
        longest = max(cuts.values()) if cut_to_window else sum(cuts.values())
        top_k = self.system.top_k
        if top_k is not None and top_k < self.rerank_depth:
            self.note(
                f"top_k: {self.rerank_depth} documents are fetched for the reranker; cut the "
                f"reranked list to {top_k} in the application"
            )
            top_k = self.rerank_depth
        is_longer = depth is not None if top_k is None else top_k > longest
        if cut_to_window and is_longer:
            self.lose(f"top_k: {self.dialect.title} returns at most its window, {longest}")
        elif cut_to_window and top_k is None and len(self.sources) > 1:
            self.note(f"top_k: none is set, so up to {longest} fused documents are returned")
        same = len(set(cuts.values())) == 1
        return {
            "depth": next(iter(cuts.values())) if same else cuts,
            "top_k": min(top_k or longest, longest),
        }

    def finish(self, fusion: Mapping[str, Any], **settings: Any) -> Translation:  # noqa: ANN401 - of any system
        """The translation to this fusion of the dialect; none where something is unsupported."""
        dialect, collapse = self.dialect, self.collapse
        if collapse and dialect.can_collapse(collapse) and dialect.collapses_window:
            self.lose(
                f"collapse: {dialect.title} collapses the first {settings['depth']} fused chunks, "
                f"which may give fewer than {settings['top_k']} results"
            )
        if self.fidelity == "unsupported":
            return Translation(self.fidelity, tuple(self.reasons))
        system = System(
            self.system.name,
            self.sources,
            dialect=self.dialect.name,
            fusion=dict(fusion),
            blend=self.blend,
            collapse=self.collapse,
            **settings,
        )
        return Translation(self.fidelity, tuple(self.reasons), system)

    def refuse(self, reason: str) -> NoReturn:
        """The engine has nothing like it; the reason that decides stands first.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("unsupported", (reason, *self.reasons))

    def refuse_fusion(self) -> NoReturn:
        """The engine has nothing like the fusion."""
        listed = ", ".join(self.dialect.fusions().load_built_in())
        self.refuse(
            f"fusion: {self.dialect.title} has nothing like {self.system.fusion.method!r} "
            f"(it has: {listed})"
        )

    def refuse_normalizer(self, name: str) -> NoReturn:
        """The engine has no such normalizer."""
        self.refuse(f"normalize: {self.dialect.title} has no {name!r}")

    def find_vector(self) -> str:
        """The vector search of a keyword and a vector search.

        Raises:
            UnsupportedError: The sources are no such pair.
        """
        given = self.system.fusion.model_dump().get("vector") if self.is_of_dialect else None
        vectors = [name for name in self.sources if SEMANTIC in self.roles[name]]
        if len(self.sources) != 2 or not (given or len(vectors) == 1):
            self.refuse(
                "runs: one keyword search and one vector search are fused: two sources are "
                f"needed, one of them of role {SEMANTIC!r} or named by --vector"
            )
        return str(given or vectors[0])

    def keep_fusion(self) -> dict[str, Any]:
        """The fusion of this very dialect, its weights by source name."""
        data = self.system.fusion.model_dump(mode="json")
        if data.get("weights"):
            data["weights"] = dict(self.weights)
        return data


def name_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights to write; none where all are equal, for a common factor changes no order."""
    return {} if len(set(weights.values())) == 1 else dict(weights)


def _listed(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {number:g}" for name, number in numbers.items())


def fit_blend(draft: Draft, writable: AbstractSet[str]) -> None:
    """Set what the engine cannot say about the draft's blend to what it does.

    Args:
        draft: Its blend is replaced.
        writable: Fields of the blend that the engine's configuration can say.
    """
    given = draft.blend
    draft.blend = _nearest_blend(draft.dialect, given, writable)
    for name in type(given).model_fields:
        before, after = getattr(given, name), getattr(draft.blend, name)
        if before != after:
            draft.lose(f"blend.{name}: {after} instead of {before}")


def check_blend(dialect: type[Dialect], system: System, writable: AbstractSet[str]) -> None:
    """Refuse a blend that the engine's configuration cannot say.

    Raises:
        ConfigError: Fields beside the writable ones are not as the engine has them.
    """
    if system.blend != _nearest_blend(dialect, system.blend, writable):
        raise ConfigError(
            f"system {system.name!r}: blend cannot be written for {dialect.title} as it is: "
            "translate it first"
        )


def _nearest_blend(dialect: type[Dialect], given: Blend, writable: AbstractSet[str]) -> Blend:
    if not isinstance(given, RerankBlend):
        return given
    defaults = dialect.blend_defaults
    fixed = defaults if defaults.get("method") == given.method else {}
    kept = {name: getattr(given, name) for name in {*writable, "reranker"}}
    return type(given).model_validate({**fixed, "method": given.method, **kept})
