"""One registry a kind of plugin: whatever stands in a folder, and what other packages add.

A new plugin is one file in the folder, found by its name; no list has to be edited. Another
installed distribution adds one by an entry point of the registry's group. Configuration may also
name a class of an installed distribution: ``method: "package.module:Class"``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import SerializerFunctionWrapHandler, field_validator, model_serializer

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.parameters import Params
from fusion_bench.config.plugins import (
    distribution_of,
    is_reference,
    load_reference,
    read_entry_points,
)
from fusion_bench.errors import ConfigError, UnknownNameError

P = TypeVar("P")
M = TypeVar("M", bound="Method")
C = TypeVar("C", bound="Method")


class Registry(Generic[P]):
    """Plugins by name.

    Args:
        kind: What they are, for messages: ``"file format"``.
        package: Dotted name of the package whose modules register them; a module whose name
            starts with an underscore registers none. Empty = no package does.
        group: Entry-point group for plugins of other distributions: ``"fusion_bench.formats"``;
            empty = there is none.
    """

    def __init__(self, kind: str, package: str, group: str) -> None:
        self.kind = kind
        self.package = package
        self.group = group
        self.aliases: Mapping[str, Mapping[str, object]] = {}
        self._plugins: dict[str, P] = {}
        self._is_complete = False

    def add_plugin(self, name: str, plugin: P) -> P:
        """Make a plugin known by a name; returns the plugin."""
        self._plugins[name] = plugin
        return plugin

    def load_built_in(self) -> Mapping[str, P]:
        """The plugins of the folder, in order of name; imports all its modules."""
        if self.package and not self._is_complete:
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__):
                if not module.name.startswith("_"):
                    importlib.import_module(f"{self.package}.{module.name}")
            self._is_complete = True
        return dict(sorted(self._plugins.items()))

    def load_all(self) -> Mapping[str, P]:
        """Every plugin, in order of name; the folder's wins over an entry point of its name."""
        references = read_entry_points(self.group)
        external = {name: self._load_external(references[name], name) for name in references}
        return dict(sorted({**external, **self.load_built_in()}.items()))

    def find_plugin(self, name: str) -> P:
        """The plugin of a name, of an entry point's name, or of ``package.module:Name``.

        Raises:
            UnknownNameError: There is none.
            ConfigError: The module belongs to no installed distribution, or holds no such plugin.
        """
        if is_reference(name):
            return self._load_external(name, name)
        built_in = self.load_built_in()
        if name in built_in:
            return built_in[name]
        references = read_entry_points(self.group)
        if name not in references:
            raise UnknownNameError(self.kind, name, {*built_in, *references, *self.aliases})
        return self._load_external(references[name], name)

    def _load_external(self, reference: str, name: str) -> P:
        plugin: P = load_reference(reference)
        self._check_plugin(plugin, name)
        return plugin

    def _check_plugin(self, plugin: P, name: str) -> None:
        """Refuse an external plugin that is not of this kind; any object will do here."""


class Method(StrictModel):
    """A class that configuration chooses by its ``method`` key.

    Written to a report or a fingerprint, a method of another distribution also states
    ``distribution: name==version``.

    Attributes:
        method: Its name, or ``package.module:Class``.
        formula: What it computes, in one line; by default the first sentence of the docstring.
        source: Where the formula comes from.
        hidden_if_none: Parameters that a report leaves out while they are None.
    """

    formula: ClassVar[str] = ""
    source: ClassVar[str] = ""
    hidden_if_none: ClassVar[frozenset[str]] = frozenset()
    method: str

    @field_validator("method")
    @classmethod
    def _check_name(cls, value: str) -> str:
        default = cls.model_fields["method"].default
        if isinstance(default, str) and value != default and not is_reference(value):
            raise ValueError(f"the name of {cls.__name__} is {default!r}")
        return value

    def presets(self) -> tuple[Params, ...]:
        """Published values that a search tries first; relative paths."""
        return ()

    @model_serializer(mode="wrap")
    def _add_distribution(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = serialize(self)
        for key in self.hidden_if_none:
            if data.get(key) is None:
                data.pop(key, None)
        distribution = distribution_of(type(self))
        return data if distribution is None else {**data, "distribution": distribution}


class MethodRegistry(Registry[type[M]]):
    """Classes of methods, by the name that their ``method`` field defaults to.

    Args:
        kind: As for :class:`Registry`.
        package: As for :class:`Registry`.
        group: As for :class:`Registry`.
        base: What every method derives from.
        aliases: Other name, in lower case → the configuration that it stands for.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        group: str,
        base: type,
        aliases: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        super().__init__(kind, package, group)
        self.base = base
        self.aliases = aliases or {}

    def register(self, model: type[C]) -> type[C]:
        """Class decorator: make ``model`` known by its default ``method``."""
        self.add_plugin(model.model_fields["method"].default, model)  # type: ignore[arg-type]
        return model

    def find_alias(self, name: str) -> Mapping[str, object] | None:
        """What another name of a method stands for; None = it is no such name.

        Names with other capitals or hyphens are found too; a plugin's name wins over an alias.
        """
        if is_reference(name):
            return None
        plain = name.lower().replace("-", "_")
        built_in = self.load_built_in()
        if name in built_in or not (plain in self.aliases or plain in built_in):
            return None
        if name in read_entry_points(self.group):
            return None
        return self.aliases.get(plain) or {"method": plain}

    def build(self, data: object) -> M:
        """The method that ``data`` describes: a name, or a mapping with ``method``.

        Raises:
            ConfigError: An unknown method, or a value that breaks a rule of the method.
        """
        return parse_model(*self._choose_model(data))

    def find_model(self, data: object) -> type[M]:
        """The class that ``data``, as for :meth:`build`, names.

        Raises:
            ConfigError: An unknown method.
        """
        return self._choose_model(data)[0]

    def validate_field(self, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        """For a pydantic field: leaves a built method alone, builds one from anything else."""
        if isinstance(data, StrictModel):
            return data
        try:
            model, options = self._choose_model(data)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return model.model_validate(options)  # pydantic puts its errors inside the field's

    def _choose_model(self, data: object) -> tuple[type[M], Mapping[Any, Any]]:
        """The class that is meant, and what it is built from."""
        if isinstance(data, str):
            data = {"method": data}
        if not isinstance(data, Mapping):
            raise ConfigError(f"a {self.kind} is a name or a mapping with 'method', given {data!r}")
        method = data.get("method")
        if method is None:
            raise ConfigError(f"'method' is required (known: {', '.join(self.load_all())})")
        alias = self.find_alias(str(method))
        if alias is not None:
            data = {**alias, **{key: data[key] for key in data if key != "method"}}
            method = data["method"]
        model = self.find_plugin(str(method))
        given = data.get("distribution")
        if given is None or "distribution" in model.model_fields:
            return model, data
        if given != distribution_of(model):
            raise ConfigError(
                f"{method}: made with {given}, and {distribution_of(model)} is installed: install "
                "that version, or remove 'distribution'"
            )
        return model, {key: value for key, value in data.items() if key != "distribution"}

    def _check_plugin(self, plugin: Any, name: str) -> None:  # noqa: ANN401 - anybody's object
        is_method = isinstance(plugin, type) and issubclass(plugin, self.base)
        if not is_method:
            raise ConfigError(f"{name!r} is no {self.kind}: derive it from {self.base.__name__}")
        default = plugin.model_fields["method"].default
        if not is_reference(name) and isinstance(default, str) and default != name:
            raise ConfigError(
                f"entry point {name!r} of {self.group} names a class whose method is {default!r}: "
                "use one name"
            )
