"""One registry a kind of plugin: whatever stands in a folder, and what other packages add.

A new plugin is one file in the folder, found by its name; no list has to be edited. Another
installed distribution adds one by an entry point of the registry's group. Configuration may also
name a class of an installed distribution: ``method: "package.module:Class"``. A function or a class
that Python code passes, or that a file of ``--plugin`` holds, is known by its name (see
``own_methods``), but is none of the registry's: no list and no search has it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from pydantic import (
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from fusion_bench.config import plugins
from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.own_methods import describe_source, is_own, is_own_origin, make_model
from fusion_bench.config.parameters import Params
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
        self.listed_by = ""
        #: Names with which a list for people begins, and names with which it ends.
        self.first: Sequence[str] = ()
        self.last: Sequence[str] = ()
        self._plugins: dict[str, P] = {}
        self._is_complete = False

    def add_plugin(self, name: str, plugin: P) -> P:
        """Make a plugin known by a name; returns the plugin."""
        self._plugins[name] = plugin
        return plugin

    def load_built_in(self) -> Mapping[str, P]:
        """The plugins of the folder, in order of name; imports all its modules."""
        if not self._is_complete:
            for name in self._list_modules():
                importlib.import_module(f"{self.package}.{name}")
            self._is_complete = True
        return dict(sorted(self._plugins.items()))

    def _list_modules(self) -> list[str]:
        """The names of the folder's modules that register plugins."""
        package = importlib.import_module(self.package) if self.package else None
        found = pkgutil.iter_modules(package.__path__) if package else ()
        return [module.name for module in found if not module.name.startswith("_")]

    def is_loaded(self, name: str) -> bool:
        """Whether a plugin is known, or was in the module of its name, which alone is imported."""
        if name not in self._plugins and not self._is_complete and name in self._list_modules():
            importlib.import_module(f"{self.package}.{name}")
        return name in self._plugins

    def load_all(self) -> Mapping[str, P]:
        """Every plugin, in order of name; the folder's wins over an entry point of its name."""
        references = plugins.read_entry_points(self.group)
        external = {name: self._load_external(references[name], name) for name in references}
        return dict(sorted({**external, **self.load_built_in()}.items()))

    def list_names(self) -> list[str]:
        """Names of all plugins as a list for people has them: first what most people use."""
        names = {*self.load_built_in(), *plugins.read_entry_points(self.group)}
        return [*self.first, *sorted(names.difference(self.first, self.last)), *self.last]

    def find_plugin(self, name: str) -> P:
        """The plugin of a name, of an entry point's name, or of ``package.module:Name``.

        Raises:
            UnknownNameError: There is none.
            ConfigError: The module belongs to no installed distribution, or holds no such plugin.
        """
        if plugins.is_reference(name):
            return self._load_external(name, name)
        if self.is_loaded(name):
            return self._plugins[name]
        built_in = self.load_built_in()
        if name in built_in:
            return built_in[name]
        references = plugins.read_entry_points(self.group)
        if name not in references:
            known = [*self.list_names(), *self.aliases]
            raise UnknownNameError(self.kind, name, known, listed_by=self.listed_by)
        return self._load_external(references[name], name)

    def _load_external(self, reference: str, name: str) -> P:
        plugin: P = plugins.load_reference(reference)
        self._check_plugin(plugin, name)
        if plugins.distribution_of(plugin) is None:
            plugins.record_origin(plugin, describe_source(plugin))  # type: ignore[arg-type] # a class
        return plugin

    def _check_plugin(self, plugin: P, name: str) -> None:
        """Refuse an external plugin that is not of this kind; any object will do here."""


class Method(StrictModel):
    """A class that configuration chooses by its ``method`` key.

    Written to a report or a fingerprint, a method of another distribution also states
    ``distribution: name==version``, and one of the user's own the SHA-256 of its source.

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

    @model_validator(mode="before")
    @classmethod
    def _check_distribution(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        given = data.get("distribution") if isinstance(data, Mapping) else None
        if given is None or "distribution" in cls.model_fields:
            return data
        known = plugins.distribution_of(cls)
        if given != known:
            raise ValueError(
                f"{data.get('method')}: made with {given}, and {known} is installed: install that "
                "version, or remove 'distribution'"
            )
        return {key: value for key, value in data.items() if key != "distribution"}

    @field_validator("method")
    @classmethod
    def _check_name(cls, value: str) -> str:
        default = cls.model_fields["method"].default
        if isinstance(default, str) and value != default and not plugins.is_reference(value):
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
        distribution = plugins.distribution_of(type(self))
        return data if distribution is None else {**data, "distribution": distribution}


#: Every registry of methods whose module is imported.
METHOD_REGISTRIES: Final[list[MethodRegistry[Any]]] = []


class MethodRegistry(Registry[type[M]]):
    """Classes of methods, by the name that their ``method`` field defaults to.

    Args:
        kind: As for :class:`Registry`.
        package: As for :class:`Registry`.
        group: As for :class:`Registry`.
        base: What every method derives from.
        aliases: Other name, in lower case → the configuration that it stands for.
        adapter: ``module:Class`` of the method that calls a function of the user; empty = a class
            is needed.
        listed_by: The command that lists all; empty = an error does.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        group: str,
        base: type,
        aliases: Mapping[str, Mapping[str, object]] | None = None,
        adapter: str = "",
        *,
        listed_by: str = "",
    ) -> None:
        super().__init__(kind, package, group)
        self.base = base
        self.aliases = aliases or {}
        self.adapter = adapter
        #: Name → origin → class of the user's own methods, the newest last.
        self._own: dict[str, dict[str, type[M]]] = {}
        #: Id of a function or class → itself, which keeps its id, and its class.
        self._made: dict[int, tuple[object, type[M]]] = {}
        if group:
            METHOD_REGISTRIES.append(self)
        self.listed_by = listed_by

    def register(self, model: type[C]) -> type[C]:
        """Class decorator: make ``model`` known by its default ``method``."""
        self.add_plugin(model.model_fields["method"].default, model)  # type: ignore[arg-type]
        return model

    def add_own(self, given: Callable[..., Any], origin: str | None = None) -> type[M]:
        """The class of a user's function or class, which is known by its name from now on.

        Args:
            given: A class of this kind of method, or a function for the adapter.
            origin: Where it comes from, for the report; None = its source.

        Raises:
            ConfigError: It is no such method, or its name is taken.
        """
        if id(given) not in self._made:
            model: Any = given
            if not isinstance(given, type):
                adapter = self.function_model()
                if adapter is None:
                    base = self.base.__name__
                    raise ConfigError(f"a {self.kind} is a class: derive it from {base}")
                model = make_model(adapter, given)
            self._check_plugin(model, "own:class")
            name = model.model_fields["method"].default
            if not isinstance(name, str) or self.find_alias(name) or name in self.load_built_in():
                raise ConfigError(
                    f"{given.__name__}: a {self.kind} needs a name of its own, given {name!r}: "
                    f"rename it, or set method: str = 'NAME' in the class"
                )
            plugins.record_origin(model, describe_source(given) if origin is None else origin)
            self._made[id(given)] = (given, model)
        made = self._made[id(given)][1]
        known = self._own.setdefault(made.model_fields["method"].default, {})
        known.pop(text := plugins.distribution_of(made) or "", None)
        known[text] = made
        return made

    def find_own(self, name: str, origin: str | None = None) -> type[M] | None:
        """The newest class that a user's method of this name, and of this origin, became."""
        known = self._own.get(name, {})
        return next(reversed(known.values()), None) if origin is None else known.get(origin)

    def list_file_methods(self) -> dict[str, type[M]]:
        """Name → class of the methods that the files of ``--plugin`` hold."""
        origins = [origin for _, origin in plugins.PLUGIN_MODULES.values()]
        return {name: known[o] for name, known in self._own.items() for o in origins if o in known}

    def forget_own(self, origin: str) -> None:
        """Know the methods of an origin no longer."""
        for known in self._own.values():
            known.pop(origin, None)

    def function_model(self) -> Any:  # noqa: ANN401 - a method with FunctionMethod
        """The class whose methods call a function of the user; None = there is none."""
        module, _, name = self.adapter.partition(":")
        return getattr(importlib.import_module(module), name) if module else None

    def find_plugin(self, name: str) -> type[M]:
        """The class of a plugin, or of a method of the user's own with that name."""
        return self.find_own(name) or super().find_plugin(name)

    def find_alias(self, name: str) -> Mapping[str, object] | None:
        """What another name of a method stands for; None = it is no such name.

        Names with other capitals or hyphens are found too; a plugin's name wins over an alias.
        """
        if plugins.is_reference(name):
            return None
        plain = name.lower().replace("-", "_")
        if self.is_loaded(name) or name in (built_in := self.load_built_in()):
            return None
        if not (plain in self.aliases or plain in built_in):
            return None
        if name in plugins.read_entry_points(self.group):
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
        if isinstance(data, str) or is_own(data):
            data = {"method": data}
        if not isinstance(data, Mapping):
            raise ConfigError(f"a {self.kind} is a name or a mapping with 'method', given {data!r}")
        method = data.get("method")
        if method is None:
            raise ConfigError(f"'method' is required (known: {', '.join(self.list_names())})")
        alias = None if is_own(method) else self.find_alias(str(method))
        if alias is not None:
            data = {**alias, **{key: data[key] for key in data if key != "method"}}
            method = data["method"]
        origin = data.get("distribution")
        if is_own(method):
            model = self.add_own(method)
            return model, {**data, "method": model.model_fields["method"].default}
        if is_own_origin(origin) and not plugins.is_reference(str(method)):
            own = self.find_own(str(method), str(origin))
            if own is None:
                known = ", ".join(self._own.get(str(method), {})) or "nothing of this name"
                raise ConfigError(
                    f"{method}: made with {origin}, and {known} is loaded: name that file with "
                    "--plugin, or pass the function"
                )
            return own, data
        return self.find_plugin(str(method)), data

    def _check_plugin(self, plugin: Any, name: str) -> None:  # noqa: ANN401 - anybody's object
        is_method = isinstance(plugin, type) and issubclass(plugin, self.base)
        if not is_method:
            raise ConfigError(f"{name!r} is no {self.kind}: derive it from {self.base.__name__}")
        default = plugin.model_fields["method"].default
        if not plugins.is_reference(name) and isinstance(default, str) and default != name:
            raise ConfigError(
                f"entry point {name!r} of {self.group} names a class whose method is {default!r}: "
                "use one name"
            )
