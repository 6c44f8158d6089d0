"""Objects from other installed distributions, by entry point or by ``package.module:Name``.

Only code that belongs to an installed distribution is imported. A module in the working directory
or beside an experiment is refused before it runs, even where Python would find it. Whatever runs
already may be named: a file of ``--plugin``, and a module that Python code imported itself.
"""

from __future__ import annotations

import importlib
import json
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.signals import ENDS

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: Id of a loaded object → the object, which keeps its id, and its distribution.
_LOADED: Final[dict[int, tuple[object, str]]] = {}

#: Name of the file of a plugin, without its suffix → its module, and its origin for reports.
PLUGIN_MODULES: Final[dict[str, tuple[ModuleType, str]]] = {}


def plugin_words(*, are_absolute: bool = False) -> list[str]:
    """The options that name the loaded plugins, for a command that runs the same.

    Args:
        are_absolute: Whether the command runs in another folder.
    """
    paths = [Path(str(module.__file__)) for module, _ in PLUGIN_MODULES.values()]
    files = [str(path.resolve()) if are_absolute else str(path) for path in paths]
    return [word for file in files for word in ("--plugin", file)]


def is_reference(name: str) -> bool:
    """Whether a name says where an object is: ``package.module:Name``."""
    return ":" in name


def refuse_references(value: object, argument: str) -> None:
    """Refuse what could name code to import, in what somebody else sends.

    Args:
        value: A configuration.
        argument: What holds it, for the message.

    Raises:
        ConfigError: A text of it has a colon.
    """
    texts: Iterable[object] = ()
    if isinstance(value, Mapping):
        texts = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        texts = value
    elif isinstance(value, str) and is_reference(value):
        raise ConfigError(
            f"{argument}: {value!r}: a name with ':' would import code, which no server does: use "
            "the methods that list_methods or 'fusion-bench methods' lists"
        )
    for each in texts:
        refuse_references(each, argument)


def distribution_of(plugin: object) -> str | None:
    """``name==version`` of the distribution that an object was loaded from; None = our own."""
    entry = _LOADED.get(id(plugin))
    return None if entry is None else entry[1]


def record_origin(plugin: object, origin: str) -> None:
    """Remember where an object comes from: a distribution, or a source."""
    _LOADED[id(plugin)] = (plugin, origin)


def read_entry_points(group: str) -> Mapping[str, str]:
    """Name → reference of each entry point of a group, such as ``fusion_bench.fusions``.

    Entry points that only the working directory declares are left out.

    Raises:
        ConfigError: Two distributions declare the same name.
    """
    from importlib.metadata import entry_points  # late, as it is slow

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


@contextmanager
def user_code(where: Callable[[BaseException], str] | str, remedy: str = "") -> Iterator[None]:
    """Turn whatever code of the user raises into an error of this package.

    An exit would look like a result. Ctrl-C and SIGTERM pass.

    Args:
        where: The start of the message; or makes it of what was raised.
        remedy: The end of the message.

    Raises:
        ConfigError: The code raises anything but an error of this package.
    """
    try:
        yield
    except (FusionBenchError, *ENDS):
        raise
    except BaseException as error:
        start = where if isinstance(where, str) else where(error)
        raise ConfigError(f"{start}{describe_raised(error)}{remedy}") from error


def describe_raised(error: BaseException) -> str:
    """The type of what was raised, and its text if it has one."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the user's own class
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def load_reference(reference: str) -> Any:  # noqa: ANN401 - whatever the distribution holds
    """The object that ``package.module:Name`` names; see :func:`find_module`.

    Raises:
        ConfigError: No such module or name, or the module may not be imported.
    """
    module_name, _, attribute = reference.partition(":")
    if not attribute.isidentifier() or not all(
        part.isidentifier() for part in module_name.split(".")
    ):
        raise ConfigError(f"{reference!r} is not of the form package.module:Name")
    with user_code(f"{reference!r} cannot be imported: "):
        module, origin = find_module(module_name)
        plugin = getattr(module, attribute)
    if origin is not None:
        record_origin(plugin, origin)
    return plugin


def find_module(name: str) -> tuple[ModuleType, str | None]:
    """A module that a name in a configuration may mean, and where it comes from.

    It is a file of ``--plugin``, a module of an installed distribution, or one that Python code
    imported itself, whose origin is not known here.

    Raises:
        ConfigError: It belongs to no installed distribution.
        Exception: Whatever its import raises.
    """
    if name in PLUGIN_MODULES:
        return PLUGIN_MODULES[name]
    imported = sys.modules.get(name)
    if imported is not None and not is_installed(imported):
        return imported, None
    parts = name.split(".")
    origin = ""
    for depth in range(1, len(parts) + 1):
        package = ".".join(parts[:depth])
        try:
            spec = find_spec(package)  # runs the parents, which were checked before
        except (ImportError, ValueError) as error:
            raise ConfigError(f"module {package!r} cannot be imported: {error}") from None
        if spec is None:
            raise ConfigError(f"module {package!r} is not installed")
        if spec.origin is None and spec.submodule_search_locations is not None:
            continue  # a namespace package has no code of its own
        origin = _find_distribution(spec)
        if not origin:
            raise ConfigError(
                f"module {package!r} ({spec.origin}) belongs to no installed distribution: install "
                "the package that holds it, or name its file with --plugin"
            )
    return importlib.import_module(name), origin


def _find_distribution(spec: ModuleSpec) -> str:
    """``name==version`` of the distribution that holds a module's file; empty = there is none."""
    from importlib.metadata import distributions  # late, as it is slow

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
        text = distribution.read_text("direct_url.json")
        data = json.loads(text) if text else {}
        if data.get("dir_info", {}).get("editable"):  # PEP 610
            source = Path(unquote(urlsplit(data["url"]).path)).resolve()
            if path.is_relative_to(source):
                return f"{name} (editable)"
    return ""


@cache
def _package_folders() -> frozenset[Path]:
    """Folders of the standard library, of installed packages, and of this package."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    named = [*map(sysconfig.get_path, kinds), *site.getsitepackages(), site.getusersitepackages()]
    folders = [*map(Path, named), Path(__file__).parents[1]]
    return frozenset(folder for each in folders for folder in (each.absolute(), each.resolve()))


def is_installed(module: ModuleType | ModuleSpec) -> bool:
    """Whether a module belongs to the standard library, to this package or to an installed one."""
    spec = module if isinstance(module, ModuleSpec) else module.__spec__
    if spec is None:
        return False  # the script or the notebook that runs
    if spec.origin is None or not spec.has_location:
        return True  # built in, or a folder without code of its own
    is_package = not _package_folders().isdisjoint(Path(spec.origin).absolute().parents)
    return is_package or bool(_find_distribution(spec))


def _is_installed(distribution: Distribution) -> bool:
    """Whether a distribution's metadata lies outside the working directory."""
    return Path(str(distribution.locate_file(""))).resolve() != Path.cwd().resolve()
