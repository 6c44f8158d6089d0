"""Finds every method in its folder: a new method is one file, and no list names it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from fusion_bench.config.models import StrictModel, validated
from fusion_bench.errors import ConfigError, UnknownNameError

__all__ = ["Registry"]

M = TypeVar("M", bound=StrictModel)
C = TypeVar("C", bound=StrictModel)


class Registry(Generic[M]):
    """Models by the name that their ``method`` field defaults to.

    Args:
        kind: What they are, for messages: ``"fusion method"``.
        package: Dotted name of the package whose modules register them; a module whose name
            starts with an underscore holds no method.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._found: dict[str, type[M]] = {}
        self._complete = False

    def register(self, model: type[C]) -> type[C]:
        """Class decorator: make ``model`` known by its default ``method``."""
        self._found[model.model_fields["method"].default] = model  # type: ignore[assignment]
        return model

    def all(self) -> Mapping[str, type[M]]:
        """Every model, by name, in order of name."""
        if not self._complete:
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__):
                if not module.name.startswith("_"):
                    importlib.import_module(f"{self.package}.{module.name}")
            self._complete = True
        return dict(sorted(self._found.items()))

    def build(self, data: object) -> M:
        """The model that ``data`` describes: a name, or a mapping with ``method``.

        Raises:
            ConfigError: An unknown method, or a value that breaks a rule of the method.
        """
        return validated(*self._chosen(data))

    def _chosen(self, data: object) -> tuple[type[M], Mapping[Any, Any]]:
        """The model that is meant, and what it is built from."""
        if isinstance(data, str):
            data = {"method": data}
        if not isinstance(data, Mapping):
            raise ConfigError(f"a {self.kind} is a name or a mapping with 'method', given {data!r}")
        method = data.get("method")
        if method is None:
            raise ConfigError(f"'method' is required (known: {', '.join(self.all())})")
        if not isinstance(method, str) or method not in self.all():
            raise UnknownNameError(self.kind, str(method), self.all())
        return self.all()[method], data

    def validator(self) -> Callable[[Any], Any]:
        """For a pydantic field: leaves a built model alone, builds one from anything else."""

        def check(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
            if isinstance(data, StrictModel):
                return data
            try:
                model, options = self._chosen(data)
            except ConfigError as error:
                raise ValueError(str(error)) from None
            return model.model_validate(options)  # pydantic puts its errors inside the field's

        return check
