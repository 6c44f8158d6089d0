"""Objects from other installed distributions, by entry point or by ``package.module:Name``.

Only code that belongs to an installed distribution is imported. A module in the working directory
or beside an experiment is refused before it runs, even where Python would find it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, distributions, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from fusion_bench.errors import ConfigError

#: Id of a loaded object → the object, which keeps its id, and its distribution.
_LOADED: Final[dict[int, tuple[object, str]]] = {}


def is_reference(name: str) -> bool:
    """Whether a name says where an object is: ``package.module:Name``."""
    return ":" in name


def distribution_of(plugin: object) -> str | None:
    """``name==version`` of the distribution that an object was loaded from; None = our own."""
    entry = _LOADED.get(id(plugin))
    return None if entry is None else entry[1]


def read_entry_points(group: str) -> Mapping[str, str]:
    """Name → reference of each entry point of a group, such as ``fusion_bench.fusions``.

    Entry points that only the working directory declares are left out.

    Raises:
        ConfigError: Two distributions declare the same name.
    """
    references: dict[str, str] = {}
    for entry in entry_points(group=group):
        if entry.dist is None or not _is_installed(entry.dist):
            continue
        if references.setdefault(entry.name, entry.value) != entry.value:
            raise ConfigError(
                f"two installed distributions declare {entry.name!r} in {group}: uninstall one "
                f"({references[entry.name]}, {entry.value})"
            )
    return references


def load_reference(reference: str) -> Any:  # noqa: ANN401 - whatever the distribution holds
    """Import ``package.module:Name`` from an installed distribution.

    Raises:
        ConfigError: No such module or name, or the module belongs to no installed distribution.
    """
    module_name, _, attribute = reference.partition(":")
    if not attribute.isidentifier() or not all(
        part.isidentifier() for part in module_name.split(".")
    ):
        raise ConfigError(f"{reference!r} is not of the form package.module:Name")
    distribution = _owner_of(module_name)
    try:
        plugin = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{reference!r} cannot be imported: {error}") from None
    _LOADED[id(plugin)] = (plugin, distribution)
    return plugin


def _owner_of(module_name: str) -> str:
    """``name==version`` of the installed distribution that holds a module.

    Each parent package is checked before it runs.
    """
    parts = module_name.split(".")
    owner = ""
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        try:
            spec = find_spec(name)  # runs the parents, which were checked before
        except (ImportError, ValueError) as error:
            raise ConfigError(f"module {name!r} cannot be imported: {error}") from None
        if spec is None:
            raise ConfigError(f"module {name!r} is not installed")
        if spec.origin is None and spec.submodule_search_locations is not None:
            continue  # a namespace package has no code of its own
        owner = _find_distribution(spec)
    return owner


def _find_distribution(spec: ModuleSpec) -> str:
    """``name==version`` of the installed distribution that holds a module's file.

    Raises:
        ConfigError: There is none.
    """
    path = Path(spec.origin or "").resolve()
    for distribution in distributions():
        root = Path(str(distribution.locate_file(""))).resolve()
        if not _is_installed(distribution):
            continue
        name = f"{distribution.metadata['Name']}=={distribution.version}"
        if path.is_relative_to(root):
            record = distribution.read_text("RECORD") or ""
            relative = path.relative_to(root).as_posix()
            if any(line.startswith(f"{relative},") for line in record.splitlines()):
                return name
        source = _editable_source(distribution)
        if source is not None and path.is_relative_to(source):
            return f"{name} (editable)"
    raise ConfigError(
        f"module {spec.name!r} ({spec.origin}) belongs to no installed distribution: install the "
        "package that holds it"
    )


def _is_installed(distribution: Distribution) -> bool:
    """Whether a distribution's metadata lies outside the working directory."""
    return Path(str(distribution.locate_file(""))).resolve() != Path.cwd().resolve()


def _editable_source(distribution: Distribution) -> Path | None:
    """The source folder of an editable installation (PEP 610)."""
    text = distribution.read_text("direct_url.json")
    data = json.loads(text) if text else {}
    if not data.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(data["url"]).path)).resolve()
