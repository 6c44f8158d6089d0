"""A dialect as data: what its engine fuses, and its configuration as templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fusion_bench.engines.dialects._configuration import (
    Values,
    check_writable,
    common_window,
    fill_template,
    match_template,
    weights_by_source,
    windows_by_source,
)
from fusion_bench.engines.dialects._sums import RankConstant
from fusion_bench.engines.dialects._translation import (
    Draft,
    ReciprocalRankSum,
    UnsupportedError,
    name_weights,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.normalize import Normalizer


@dataclass(frozen=True)
class Form:
    """The files of a configuration of some of a dialect's systems.

    Attributes:
        files: Name → template.
        values: What every system has that is written so, by name.
    """

    files: Mapping[str, Any]
    values: Mapping[str, Any] = field(default_factory=dict)


class EngineDialect(Dialect):
    """A dialect whose translation and configuration follow from what it states.

    Attributes:
        forms: Its files; a system is written by the first form that has its values.
        notes: What else to do with them.
        lists: Fewest and most lists that are fused.
        lists_rule: What is said where they are fewer or more.
        is_pair: Whether a vector search and another one are fused, and no more.
        windows: How its windows are, as :meth:`Draft.choose_windows` takes it.
        fixed_constant: What is said where the rank constant is another than the fixed one.
        no_weights: What is said where its reciprocal ranks have no weights, and ours have.
        score_methods: Our normalizer → the method that sums scores scaled so.
        equal_scores: What equal scores of a list count; None = nothing is said of it.
    """

    forms: ClassVar[tuple[Form, ...]]
    notes: ClassVar[tuple[str, ...]] = ()
    lists: ClassVar[tuple[int, int]] = (1, 1000)
    lists_rule: ClassVar[str] = "two or more lists are fused"
    is_pair: ClassVar[bool] = False
    windows: ClassVar[Mapping[str, bool]] = {"by_source": True}
    fixed_constant: ClassVar[str] = ""
    no_weights: ClassVar[str] = ""
    score_methods: ClassVar[Mapping[str, str]] = {}
    equal_scores: ClassVar[float | None] = None

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """The fusion kept or converted, with the windows that it needs."""
        draft = Draft(cls, system, roles)
        try:
            if not cls.lists[0] <= len(draft.sources) <= cls.lists[1]:
                draft.refuse(f"runs: {cls.lists_rule}")
            more = {"vector": draft.find_vector()} if cls.is_pair else {}
            fusion = cls.keep(draft) if draft.is_of_dialect else cls.convert(draft)
            return cls.finish(draft, {**fusion, **more})
        except UnsupportedError as problem:
            return Translation(*problem.args)

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """The translation with this fusion; an engine's own windows and blends are put here."""
        return draft.finish(fusion, **draft.choose_windows(**cls.windows))

    @classmethod
    def keep(cls, draft: Draft) -> Mapping[str, Any]:
        """The fusion of a system of this very dialect."""
        return draft.keep_fusion()

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """The fusion in the engine's terms.

        Raises:
            UnsupportedError: It has nothing like it.
        """
        if (ranks := draft.find_reciprocal_ranks()) is not None:
            return cls.convert_ranks(draft, ranks)
        if not cls.score_methods or (mean := draft.find_score_sum()) is None:
            draft.refuse_fusion()
        return cls.convert_scores(draft, mean.normalize)

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """Reciprocal ranks as the engine's method of them says."""
        method = next(each for each in cls.methods if issubclass(each, RankConstant))
        fusion: dict[str, Any] = {"method": name_of(method)}
        name, has_weights = method.constant_field, "weights" in method.model_fields
        if not name and set(ranks.k.values()) != {method.fixed_constant}:
            draft.lose(f"k: {cls.fixed_constant}")
        if cls.no_weights and not ranks.has_equal_weights:
            draft.lose(f"weights: {cls.no_weights}")
        if name:
            rules = method.model_fields[name].metadata
            least = int(next((rule.ge for rule in rules if hasattr(rule, "ge")), 1))
            fusion[name] = draft.choose_rank_constant(ranks, least, base=method.first_rank)
        return {**fusion, "weights": name_weights(ranks.weights)} if has_weights else fusion

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """A sum of scores; ``scale`` is ``by_source`` where the sources have different ones."""
        method = cls.score_methods.get(scale.method)
        if method is None:
            draft.refuse_normalizer(scale.method)
        if cls.equal_scores is not None and scale.constant != cls.equal_scores:
            draft.lose(f"normalize: a list of equal scores counts {cls.equal_scores:g}")
        return {"method": method, "weights": name_weights(draft.weights)}

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The files of a system."""
        return cls.write_by_role(system, {})

    @classmethod
    def write_by_role(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Configuration:
        """The files of a system, whose searches go by the roles of its lists."""
        check_writable(cls, system)
        values = cls.list_values(system, roles)
        form = next(form for form in cls.forms if form.values.items() <= values.items())
        files = {name: fill_template(each, values) for name, each in form.files.items()}
        return Configuration(files, (*cls.notes, *values.get("notes", ())))

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:  # noqa: ARG003 - of some
        """What is written of a system, by name.

        Raises:
            ConfigError: It cannot be written as it is.
        """
        fusion = system.fusion.model_dump()
        weights, windows = cls.list_weights(system), windows_by_source(system)
        values: Values = {**fusion, "weights": [*weights.values()], "windows": windows}
        if cls.is_pair:
            others = [name for name in system.runs if name != fusion.get("vector")]
            if len(system.runs) != 2 or len(others) != 1:
                raise ConfigError(
                    f"system {system.name!r}: fusion.vector must name one of two runs: translate "
                    "it first"
                )
            values["other"] = others[0]
        if "by_source" not in cls.windows:
            values["window"] = common_window(system)
        values["top_k"] = system.top_k or sum(windows.values())
        values["sources"] = [
            {"name": name, "weight": weights[name], "window": windows[name], "n": n}
            for n, name in enumerate(system.runs, 1)
        ]
        return values

    @classmethod
    def list_weights(cls, system: System) -> Mapping[str, float]:
        """The weights that are written, by source."""
        return weights_by_source(system)

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system, without its name, from what was written.

        Raises:
            ConfigError: It is no configuration of this engine.
        """
        try:
            return {"dialect": cls.name, **cls.make_system(cls._match_forms(files))}
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
            listed = ", ".join(cls.forms[-1].files)
            raise ConfigError(
                f"{listed}: not a configuration of {cls.title} as it is written here: {problem}"
            ) from None

    @classmethod
    def _match_forms(cls, files: Mapping[str, str]) -> Values:
        """The values of the first form that the files have; those of the form among them.

        Raises:
            ValueError: They have none, for the last form's reason.
        """
        problem: Exception = ValueError("no form")
        for form in cls.forms:
            try:
                return _match_form(form, files)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                problem = error
        raise ValueError(problem)

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """The keys of a system from the values of its files."""
        if cls.is_pair:
            sources = [{"name": values["other"]}, {"name": values["vector"]}]
        else:
            windows = values.get("windows", {}).items()
            listed = [{"name": name, "window": window} for name, window in windows]
            sources = values.get("sources") or listed
        names = [source["name"] for source in sources]
        given = {**sources[0], **values}
        method = cls.fusions().find_plugin(given.get("method", name_of(cls.methods[0])))
        fusion = {key: given[key] for key in method.model_fields if key in given}
        fusion["method"] = name_of(method)
        weights = values.get("weights") or [source.get("weight") for source in sources]
        fusion.pop("weights", None)
        if "weights" in method.model_fields and None not in weights:
            fusion["weights"] = dict(zip(names, weights, strict=True))
        window = given.get("window")
        depth = {source["name"]: source.get("window", window) for source in sources}
        is_common = len({*depth.values()}) == 1
        return {
            "runs": names,
            "fusion": fusion,
            "depth": depth[names[0]] if is_common else depth,
            "top_k": values.get("top_k"),
        }


def _match_form(form: Form, files: Mapping[str, str]) -> Values:
    values: Values = dict(form.values)
    for name, template in form.files.items():
        if name not in files:
            raise ConfigError(f"no file {name} (given: {', '.join(files) or 'none'})")
        matched = match_template(template, files[name]).items()
        values |= {key: value for key, value in matched if value or key not in values}
    return values


def name_of(method: type[Fusion]) -> str:
    """The name of a method."""
    name: str = method.model_fields["method"].default
    return name


def share(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights divided by their sum."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
