"""A dialect as data: what its engine fuses, and its configuration as templates.

A template is filled with a system's values; the tests read it back. One of JSON is JSON with
:class:`Slot`, :class:`Each` and :class:`Maybe` in it. A template of any other text has ``$name`` in
place of a value, with how it is written after ``!``; ``$[…$|…$]`` is written once a source, with
what follows ``$|`` between two of them; ``$(…$)`` only where its values are there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from fusion_bench.engines.dialects._sums import RankConstant
from fusion_bench.engines.dialects._translation import (
    LONGEST_WINDOW,
    Draft,
    ReciprocalRankSum,
    UnsupportedError,
    name_weights,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.normalize import Normalizer

#: What is written of a system, by name; ``sources`` has the values of each list.
Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Slot:
    """A place in JSON for a value.

    Attributes:
        name: Of the value.
    """

    name: str


@dataclass(frozen=True)
class Each:
    """A list in JSON with one item a source.

    Attributes:
        item: Its template.
    """

    item: Any


@dataclass(frozen=True)
class Maybe:
    """The value of a key, or an item of a list, that is written only if its value is there.

    Attributes:
        name: Of the value.
        item: Its template; None = a slot for the value.
    """

    name: str
    item: Any = None

    @property
    def template(self) -> Any:  # noqa: ANN401 - JSON
        """Template of the value."""
        return Slot(self.name) if self.item is None else self.item


def _is_there(values: Values, name: str) -> bool:
    return values.get(name) not in (None, {}, [])


def _is_written(item: Any, values: Values) -> bool:  # noqa: ANN401 - JSON
    return not isinstance(item, Maybe) or _is_there(values, item.name)


def _fill_json(template: Any, values: Values) -> Any:  # noqa: ANN401 - JSON
    if isinstance(template, Slot):
        return values[template.name]
    if isinstance(template, Maybe):
        return _fill_json(template.template, values)
    if isinstance(template, Each):
        return [_fill_json(template.item, {**values, **source}) for source in values["sources"]]
    if isinstance(template, Mapping):
        return {
            _fill_json(key, values): _fill_json(item, values)
            for key, item in template.items()
            if _is_written(item, values)
        }
    if isinstance(template, list):
        return [_fill_json(item, values) for item in template if _is_written(item, values)]
    return template


#: A part of a template of text that is no text.
PART: Final = re.compile(
    r"\$\[(?P<each>.*?)(?:\$\|(?P<between>.*?))?\$\]|\$\((?P<maybe>.*?)\$\)"
    r"|\$(?P<slot>\w+)(?:!(?P<form>\w))?",
    re.DOTALL,
)
#: How a value is written: as in Python, JSON or SQL (a text or a name), as it is up to the end of
#: the line, or plain.
_FORMS: Final[Mapping[str | None, Callable[[Any], str]]] = {
    "r": repr,
    "j": lambda value: json.dumps(value, allow_nan=False),
    "q": lambda text: "'" + text.replace("'", "''") + "'",
    "i": lambda text: '"' + text.replace('"', '""') + '"',
    "t": str,
    None: str,
}


def fill_text(template: str, values: Values) -> str:
    """A template of text with the values of a system."""

    def write(part: re.Match[str]) -> str:
        if (item := part["each"]) is not None:
            texts = [fill_text(item, {**values, **source}) for source in values["sources"]]
            return (part["between"] or "").join(texts)
        if (item := part["maybe"]) is not None:
            are_there = [_is_there(values, slot["slot"]) for slot in PART.finditer(item)]
            return fill_text(item, values) if all(are_there) else ""
        return _FORMS[part["form"]](values[part["slot"]])

    return PART.sub(write, template)


def weights_by_source(system: System) -> dict[str, float]:
    """The weight of each source of a system whose weights name sources, not roles.

    Raises:
        ConfigError: They name roles.
    """
    nothing = [frozenset[str]()] * len(system.runs)
    try:
        weights = system.fusion.source_weights(system.runs, nothing).tolist()
    except ConfigError as error:
        raise ConfigError(
            f"system {system.name!r}: {error}: to write it, name sources instead of roles, or "
            "translate it first"
        ) from None
    return dict(zip(system.runs, weights, strict=True))


def windows_by_source(system: System) -> dict[str, int]:
    """Number of documents that are fetched of each source."""
    depth = system.depth
    if isinstance(depth, Mapping):
        return {name: depth.get(name, LONGEST_WINDOW) for name in system.runs}
    return dict.fromkeys(system.runs, depth or LONGEST_WINDOW)


def read_template(name: str) -> str:
    """A template of text: of a file in ``templates``, which is named after what it writes."""
    path = Path(__file__).with_name("templates") / f"{name}.template"
    return path.read_text(encoding="utf-8")


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
        constant_rule: What is said where the rank constant is another than the fixed one.
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
    constant_rule: ClassVar[str] = ""
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
            draft.lose(f"k: {cls.constant_rule}")
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
        if system.dialect != cls.name:
            raise ConfigError(
                f"system {system.name!r}: dialect is {system.dialect}, {cls.name} is needed: "
                "translate it first"
            )
        extras = {
            "blend": not isinstance(system.blend, (NoBlend, *cls.blends)),
            system.class_field or "by_query_type": system.class_key is not None,
            "min_relevance": system.min_relevance != cls.defaults.get("min_relevance"),
            "stages": bool(system.stages),
            "abstain": system.abstain is not None and not cls.minimum_score,
        }
        if unwritten := [key for key, is_set in extras.items() if is_set]:
            raise ConfigError(
                f"system {system.name!r}: {', '.join(unwritten)} cannot be written for "
                f"{cls.title}: translate it first"
            )
        values = cls.list_values(system, roles)
        form = next(form for form in cls.forms if form.values.items() <= values.items())
        files: dict[str, str] = {}
        for name, template in form.files.items():
            if isinstance(template, str):
                files[name] = fill_text(template, values)
            else:
                data = _fill_json(template, values)
                text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
                files[name] = f"{text}\n"
        return Configuration(files, (*cls.notes, *values.get("notes", ())))

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:  # noqa: ARG003 - of some
        """Values that are written of a system, by name.

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
            if len({*windows.values()}) > 1:
                raise ConfigError(
                    f"system {system.name!r}: depth: all lists have one window here: set one number"
                )
            values["window"] = next(iter(windows.values()))
        values["min_score"] = system.abstain and system.abstain.above
        values["top_k"] = system.top_k or sum(windows.values())
        values["sources"] = [
            {"name": name, "weight": weights[name], "window": windows[name], "n": n}
            for n, name in enumerate(system.runs, 1)
        ]
        if system.collapse is not None and cls.can_collapse(system.collapse):
            by, kept = system.collapse.by, system.collapse.keep or 1
            field = by if isinstance(by, str) else by.field or by.column or "PARENT"
            notes = [f"{field}: the field or column with the id of each chunk's document."]
            if kept > 1 and cls.collapses_window:
                notes.append("Sort the chunks of all documents by their scores.")
            more = kept if kept > 1 else None
            values |= {"parent": field, "chunks": kept, "more_chunks": more, "notes": tuple(notes)}
        return values

    @classmethod
    def list_weights(cls, system: System) -> Mapping[str, float]:
        """The weights that are written, by source."""
        return weights_by_source(system)


def name_of(method: type[Fusion]) -> str:
    """The name of a method."""
    name: str = method.model_fields["method"].default
    return name


def share(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights divided by their sum."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
