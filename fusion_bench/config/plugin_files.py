"""Files of ``--plugin``: exactly this file is executed, for exactly this run.

Only a command line names one, never an experiment, so that an experiment from elsewhere executes
nothing. A file is read once, and what was read is digested, checked and executed. Its folder is not
searched for modules. What it imports belongs to the standard library or to installed packages;
anything else is refused before it runs.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from fusion_bench.config.own_methods import locate_raise, required_arguments
from fusion_bench.config.plugins import PLUGIN_MODULES, is_installed, record_origin
from fusion_bench.config.registry import METHOD_REGISTRIES
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.files import explain_error, read_regular


class PluginFile(NamedTuple):
    """A file that was read, and not yet executed.

    Attributes:
        path: Where it lies.
        data: Its bytes.
    """

    path: Path
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes in hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def origin(self) -> str:
        """``NAME.py sha256:…``, as reports and baselines name it."""
        return f"{self.path.name} sha256:{self.digest}"


class _ImportGuard:
    """Refuses to find modules that belong to no installed package."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None = the other finders may go on."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or is_installed(spec):
            return None
        raise ImportError(
            f"{name} ({spec.origin}) belongs to no installed package, and a plugin imports nothing "
            "else: put its code into the plugin's file, or install it as a package"
        )


_GUARD: Final = _ImportGuard()


@contextmanager
def loaded_plugins(paths: Sequence[Path], known: Collection[str] | None = None) -> Iterator[None]:
    """Execute plugins, and know their methods by their names while the context lasts.

    A public class of a kind of method is one; a public function is one where its arguments without
    a default have the names that such a function gets, as in ``def mine(lists, k=60)``. Other
    objects are found as ``NAME_OF_FILE:object``.

    Args:
        paths: The files.
        known: What their origins must be among before any of them is executed; None = all may be.

    Raises:
        ConfigError: A file cannot be read or executed, or is not among those that are known; or its
            code raises anything.
    """
    try:
        _load_plugins(paths, known)
        yield
    except FusionBenchError:
        raise
    except (Exception, SystemExit) as error:  # an exit would look like a result
        line = locate_raise(error, {str(module.__file__) for module, _ in PLUGIN_MODULES.values()})
        if not line:
            raise
        what = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{line}a function of --plugin raised {what}") from error
    finally:
        _forget_plugins()


def _forget_plugins() -> None:
    for module, origin in PLUGIN_MODULES.values():
        sys.modules.pop(module.__name__, None)
        for registry in METHOD_REGISTRIES:
            registry.forget_own(origin)
    PLUGIN_MODULES.clear()
    if _GUARD in sys.meta_path:
        sys.meta_path.remove(_GUARD)


def _load_plugins(paths: Sequence[Path], known: Collection[str] | None) -> None:
    plugins = [_read_plugin(path) for path in paths]
    for plugin in plugins:
        if known is not None and plugin.origin not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise ConfigError(
                f"{plugin.path}: not executed: the baseline names no plugin {plugin.origin} (it "
                f"names {listed}): restore the file, leave it out, or accept it with --update "
                "--reason"
            )
    for plugin in plugins:
        _execute_plugin(plugin)


def _read_plugin(path: Path) -> PluginFile:
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ConfigError(f"--plugin {path}: a file NAME.py is needed, where NAME is an identifier")
    try:
        return PluginFile(path, read_regular(path))
    except OSError as error:
        raise ConfigError(f"--plugin {path}: cannot be read: {explain_error(error)}") from None


def _execute_plugin(plugin: PluginFile) -> None:
    """Execute the bytes that were read; its functions and classes are methods from now on."""
    name = plugin.path.stem
    if name in PLUGIN_MODULES:
        raise ConfigError(f"--plugin {plugin.path}: two plugins are named {name!r}: rename one")
    module = ModuleType(f"fusion_bench_plugin_{plugin.digest[:16]}_{name}")
    module.__file__ = str(plugin.path)
    sys.modules[module.__name__] = module
    PLUGIN_MODULES[name] = module, plugin.origin
    if _GUARD not in sys.meta_path:
        sys.meta_path.insert(0, _GUARD)
    try:
        code = compile(plugin.data, str(plugin.path), "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - the user named this file for this run
    except (Exception, SystemExit) as error:  # an exit would look like a result
        line = locate_raise(error, {str(plugin.path)}) or f"{plugin.path}: "
        raise ConfigError(f"{line}{type(error).__name__}: {error}") from error
    for own in _public_objects(module):
        record_origin(own, plugin.origin)
        _register_methods(own, plugin.origin)


def _public_objects(module: ModuleType) -> list[Callable[..., Any]]:
    """The functions and classes that a module defines, without those that begin with ``_``."""
    return [
        value
        for name, value in vars(module).items()
        if isinstance(value, type | FunctionType)
        and not name.startswith("_")
        and value.__module__ == module.__name__
    ]


def _register_methods(own: Callable[..., Any], origin: str) -> None:
    """Make a class or a function known to the registry of its kind, where there is one."""
    for registry in METHOD_REGISTRIES:
        if isinstance(own, type):
            is_method = issubclass(own, registry.base) and not inspect.isabstract(own)
        else:
            adapter = registry.function_model()
            is_method = adapter is not None and adapter.given == required_arguments(own)
        if is_method:
            registry.add_own(own, origin)
