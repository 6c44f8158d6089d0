"""The contract of a dialect: one search engine's fusion, in its own terms and with its defaults.

A system with ``dialect: NAME`` is fused as that engine fuses: ``method`` and the parameters of its
``fusion`` are the engine's, so are the defaults, and the formula counts ranks as the engine does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from fusion_bench.config.query_types import CLASS_KEYS
from fusion_bench.config.registry import MethodRegistry, Registry
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.collapse import Collapse, Place
from fusion_bench.methods.blend import Blend
from fusion_bench.methods.fuse import Fusion

if TYPE_CHECKING:
    from fusion_bench.experiment.system import System


D = TypeVar("D", bound="Dialect")

#: How well a system can be written for an engine. ``exact`` = equal scores up to a common factor
#: and the engine's precision; ``rank-equivalent`` = equal order on any lists; ``approximate`` =
#: another order on some lists; ``unsupported`` = the engine has nothing like it.
Fidelity: TypeAlias = Literal["exact", "rank-equivalent", "approximate", "unsupported"]


#: Where nothing but the scale of the scores is lost.
SAME_ORDER: tuple[Fidelity, ...] = ("exact", "rank-equivalent")


@dataclass(frozen=True)
class Translation:
    """A system in the terms of an engine.

    Attributes:
        fidelity: How well the engine can do what the system does.
        reasons: What is lost and why; empty where nothing is.
        system: The nearest system of the dialect; None where it is unsupported.
    """

    fidelity: Fidelity
    reasons: tuple[str, ...] = ()
    system: System | None = None


@dataclass(frozen=True)
class Configuration:
    """What a user gives to an engine.

    Attributes:
        files: Name → text of each file: ``{"request.json": "{…}"}``.
        notes: What else to do, such as where a file goes or which version is needed.
    """

    files: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())


class Dialect(ABC):
    """One engine: its methods, its defaults, and its configuration; never instantiated.

    Attributes:
        name: What ``dialect:`` says.
        title: The engine's name.
        version: The version whose formula this is.
        checked: The day of the last check of the formula against the source, as YYYY-MM-DD.
        source: Where the formula is documented.
        methods: Fusions under the engine's names of methods; the first is the default.
        defaults: Keys of a system, such as ``depth`` or ``top_k``, where a user says nothing.
        blends: The rerank blends that are part of it; others belong to the application.
        blend_defaults: Keys of a blend where a user names no method, or the one that stands here.
        rank_base: The rank of the first document in the engine's formula, 0 or 1; None = unknown.
        precision: In which the engine compares scores.
        ignores: What the engine accepts and ignores, or cannot do: one sentence each.
        most_chunks: How many chunks of a document a request can keep; 0 = it collapses none.
        collapse_places: Where a request collapses chunks, the first by default.
        collapses_window: Whether a request collapses no more chunks than its window has.
        collapse_rule: What the engine does with the chunks of a document instead.
        searches_by_role: Whether the roles of the lists decide how each one's search is written.
        minimum_score: The setting that drops documents by their fused score; empty = there is none.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str]
    checked: ClassVar[str]
    source: ClassVar[str]
    methods: ClassVar[tuple[type[Fusion], ...]]
    defaults: ClassVar[Mapping[str, Any]] = {}
    blends: ClassVar[tuple[type[Blend], ...]] = ()
    blend_defaults: ClassVar[Mapping[str, Any]] = {}
    rank_base: ClassVar[Literal[0, 1] | None] = 1
    precision: ClassVar[Literal["float32", "float64"]] = "float32"
    ignores: ClassVar[tuple[str, ...]] = ()
    most_chunks: ClassVar[int] = 0
    collapse_places: ClassVar[tuple[Place, ...]] = ("fused", "reranked")
    collapses_window: ClassVar[bool] = True
    collapse_rule: ClassVar[str] = ""
    searches_by_role: ClassVar[bool] = False
    minimum_score: ClassVar[str] = ""

    @classmethod
    @cache
    def fusions(cls) -> MethodRegistry[Fusion]:
        """The engine's methods by name."""
        kind = f"fusion method of {cls.title}"
        registry: MethodRegistry[Fusion] = MethodRegistry(kind, "", "", Fusion)
        for method in cls.methods:
            registry.register(method)
        return registry

    @classmethod
    def fill_defaults(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """A system as YAML says it, with the engine's defaults; fusions by class are built."""
        filled = cls._fill_blend({"fusion": {}, **cls.defaults, **data})
        for key in CLASS_KEYS:
            if isinstance(by_class := filled.get(key), Mapping):
                filled[key] = {name: cls._fill_part(part) for name, part in by_class.items()}
        return filled

    @classmethod
    def _fill_part(cls, part: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if not isinstance(part, Mapping):
            return part
        return cls._fill_blend({**part, "fusion": cls.build_fusion(part.get("fusion", {}))})

    @classmethod
    def _fill_blend(cls, data: dict[str, Any]) -> dict[str, Any]:
        blend, method = data.get("blend"), cls.blend_defaults.get("method")
        if (
            method is None
            or not isinstance(blend, Mapping)
            or blend.get("method", method) != method
        ):
            return data
        return {**data, "blend": {**cls.blend_defaults, **blend}}

    @classmethod
    def build_fusion(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        """The engine's fusion that ``data``, a name or a mapping with ``method``, describes."""
        if isinstance(data, Mapping) and "method" not in data:
            data = {"method": cls.methods[0].model_fields["method"].default, **data}
        fusion = cls.fusions().validate_field(data)
        if not isinstance(fusion, cls.methods):
            listed = ", ".join(cls.fusions().load_built_in())
            problem = f"{fusion.method!r} is no method of {cls.title}"
            raise ValueError(f"{problem} (known: {listed})")  # noqa: TRY004 - pydantic's rule
        return fusion

    @classmethod
    def can_collapse(cls, collapse: Collapse) -> bool:
        """Whether a request collapses so: it keeps the best chunks, in the order of the list."""
        is_best = collapse.score in (None, "max", "first") and collapse.orphans == "error"
        return is_best and (collapse.keep or 1) <= cls.most_chunks

    @classmethod
    @abstractmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """The nearest system of this dialect.

        Args:
            system: Any system, of any dialect or of none.
            roles: Of its sources, by name.
        """

    @classmethod
    def keeps_order(cls, system: System, roles: Mapping[str, frozenset[str]]) -> bool:
        """Whether the engine can order any lists as a system does; arguments as above."""
        return cls.translate(system, roles).fidelity in SAME_ORDER

    @classmethod
    @abstractmethod
    def write(cls, system: System) -> Configuration:
        """The engine's own configuration of a system of this dialect."""

    @classmethod
    def write_by_role(
        cls,
        system: System,
        roles: Mapping[str, frozenset[str]],  # noqa: ARG003 - of some engines
    ) -> Configuration:
        """The engine's own configuration, with what the roles of the sources say of it."""
        return cls.write(system)


class DialectRegistry(Registry[type[Dialect]]):
    """Dialects by name."""

    def register(self, dialect: type[D]) -> type[D]:
        """Class decorator: make a dialect known by its name."""
        self.add_plugin(dialect.name, dialect)
        return dialect

    def _check_plugin(self, plugin: Any, name: str) -> None:  # noqa: ANN401 - anybody's object
        if not (isinstance(plugin, type) and issubclass(plugin, Dialect)):
            raise ConfigError(f"{name!r} is no dialect: derive it from {Dialect.__name__}")


dialects = DialectRegistry("dialect", "fusion_bench.engines.dialects", "fusion_bench.engines")


def parse_dialect(given: object) -> type[Dialect]:
    """The dialect that the key ``dialect`` of a system names.

    Raises:
        ConfigError: It is no name, or there is no such dialect.
    """
    if isinstance(given, str):
        return dialects.find_plugin(given)
    known = dialects.load_all()
    values = given.values() if isinstance(given, Mapping) else ()
    named = next((value for value in values if value in known), "opensearch")
    raise ConfigError(
        f"the name of an engine is needed, such as dialect: {named}; given {given!r:.100} "
        f"(known: {', '.join(dialects.list_names())})"
    )


def list_dialects() -> list[dict[str, str]]:
    """Every engine that export writes for, with its version and its fusion methods."""
    named = {name: dialects.find_plugin(name) for name in dialects.list_names()}
    return [
        {
            "engine": name,
            "version": f"{dialect.title} {dialect.version}",
            "fusions": ", ".join(dialect.fusions().load_built_in()),
        }
        for name, dialect in named.items()
    ]


def describe_dialect(dialect: type[Dialect]) -> str:
    """What an engine can express: its methods with their options, and what it cannot."""
    methods = [
        f"{name}: {', '.join(key for key in method.model_fields if key != 'method') or 'no option'}"
        for name, method in dialect.fusions().load_built_in().items()
    ]
    return " ".join((f"{dialect.title} has {'; '.join(methods)}.", *dialect.ignores))


def find_engine(name: str, *, where: str) -> type[Dialect]:
    """The dialect of the search engine that an option names.

    Args:
        name: What was given.
        where: The option, for a message.

    Raises:
        UnknownNameError: There is no such engine.
        ConfigError: It is a class that cannot be used.
    """
    try:
        return dialects.find_plugin(name)
    except UnknownNameError:
        raise UnknownNameError("engine", name, dialects.list_names(), where=where) from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
