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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from fusion_bench.config.own_methods import locate_raise, required_arguments
from fusion_bench.config.plugins import (
    PLUGIN_MODULES,
    describe_raised,
    is_installed,
    record_origin,
    user_code,
)
from fusion_bench.config.registry import METHOD_REGISTRIES
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.util.files import explain_error, read_regular
from fusion_bench.util.signals import ENDS


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
    except (FusionBenchError, *ENDS):
        raise
    except BaseException as error:  # an exit would look like a result
        line, what = _locate(error), describe_raised(error)
        if line:
            raise ConfigError(f"{line}a function of --plugin raised {what}") from error
        loaded = [own for module, _ in PLUGIN_MODULES.values() for own in _public_objects(module)]
        if isinstance(error, USES) and any(isinstance(each, type) for each in loaded):
            files = ", ".join(sorted(_list_files()))
            raise ConfigError(
                f"--plugin {files}: what a method of a class returned cannot be used ({what}): "
                "tests/contract in the sources shows what each one returns"
            ) from error
        raise
    finally:
        for module, origin in PLUGIN_MODULES.values():
            sys.modules.pop(module.__name__, None)
            for registry in METHOD_REGISTRIES:
                registry.forget_own(origin)
        PLUGIN_MODULES.clear()
        if _GUARD in sys.meta_path:
            sys.meta_path.remove(_GUARD)


def _list_files() -> set[str]:
    """The files of all loaded plugins."""
    return {str(module.__file__) for module, _ in PLUGIN_MODULES.values()}


def _locate(error: BaseException) -> str:
    """``FILE:LINE: `` of the last line of a plugin that an error went through; empty = none."""
    return locate_raise(error, _list_files())


#: What using a value of the wrong kind raises.
USES: Final = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def _load_plugins(paths: Sequence[Path], known: Collection[str] | None) -> None:
    plugins = []
    for path in paths:
        if path.suffix != ".py" or not path.stem.isidentifier():
            raise ConfigError(
                f"--plugin {path}: a file NAME.py is needed, where NAME is an identifier"
            )
        try:
            plugins.append(PluginFile(path, read_regular(path)))
        except OSError as error:
            raise ConfigError(f"--plugin {path}: cannot be read: {explain_error(error)}") from None
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
    file = str(plugin.path)
    with user_code(lambda error: locate_raise(error, {file}) or f"{file}: "):
        code = compile(plugin.data, file, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - the user named this file for this run
    for own in _public_objects(module):
        record_origin(own, plugin.origin)
        for registry in METHOD_REGISTRIES:
            if isinstance(own, type):
                is_method = issubclass(own, registry.base) and not inspect.isabstract(own)
                for name in vars(own).keys() & ARRAYS.keys() if is_method else ():
                    setattr(own, name, _check_array(vars(own)[name], name))
            else:
                adapter = registry.function_model()
                is_method = adapter is not None and adapter.given == required_arguments(own)
            if is_method:
                registry.add_own(own, plugin.origin)


def _public_objects(module: ModuleType) -> list[Callable[..., Any]]:
    """The functions and classes that a module defines, without those that begin with ``_``."""
    return [
        value
        for name, value in vars(module).items()
        if isinstance(value, type | FunctionType)
        and not name.startswith("_")
        and value.__module__ == module.__name__
    ]


#: Method of a class → how many numbers it returns, of what it gets first.
ARRAYS: Final[Mapping[str, Callable[[Any], int]]] = {
    "fuse": lambda runs: len(runs.documents),
    "scale_lists": lambda lists: len(lists.scores),
    "combine": lambda runs: len(runs.documents),
    "compute_values": lambda ranking: ranking.size,
}


def _check_array(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a method of a user's class, so that it returns an array of numbers or raises.

    They are finite; a blend may give documents no score, as NaN.
    """
    import numpy as np  # late, as few runs have a plugin

    def checked(self: Any, given: Any, *others: Any) -> Any:  # noqa: ANN401 - of any class
        with user_code(lambda error: f"{_locate(error)}a function of --plugin raised "):
            returned = method(self, given, *others)
        with user_code(f"{type(self).__name__}.{name}: "):
            values = np.asarray(returned)
        size, kind = ARRAYS[name](given), f"{values.dtype} of shape {values.shape}"
        problem = f"{size} numbers are needed, given {kind}"
        if values.shape == (size,) and values.dtype.kind in "fiub":
            is_fit = np.isfinite(values) | (np.isnan(values) & (name == "combine"))
            if is_fit.all():
                return values
            problem = f"finite numbers are needed, given {values[~is_fit][0]}"
        raise ConfigError(f"{type(self).__name__}.{name}: {problem}")

    checked.__wrapped__ = method  # type: ignore[attr-defined] # its source is the method's
    return checked
