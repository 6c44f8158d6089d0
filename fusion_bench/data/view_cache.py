"""Values derived from aligned runs, computed once: each cached function has a cache of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from fusion_bench.data.aligned_runs import AlignedRuns

P = ParamSpec("P")
T = TypeVar("T")


class ViewCache:
    """What cached functions returned for one view of aligned runs; never pickled."""

    def __init__(self) -> None:
        self._results: dict[Callable[..., object], dict[Hashable, object]] = {}

    def __reduce__(self) -> tuple[type[ViewCache], tuple[()]]:
        return ViewCache, ()

    def lookup(
        self,
        function: Callable[..., T],
        key: Hashable,
        compute: Callable[[], T],
        keep: int | None = None,
    ) -> T:
        """What ``compute`` returned when first asked for this function and key.

        Args:
            function: Whose result it is.
            key: Tells its calls apart.
            compute: Computes the result.
            keep: Forget the oldest results of the function beyond so many; None = keep all.
        """
        results = self._results.setdefault(function, {})
        if key not in results:
            results[key] = compute()
            for oldest in list(results)[: max(len(results) - keep, 0)] if keep is not None else ():
                del results[oldest]
        return cast("T", results[key])


def cached_by_view(
    *, keep: int | None = None, key: Callable[..., Hashable] | None = None
) -> Callable[[Callable[Concatenate[AlignedRuns, P], T]], Callable[Concatenate[AlignedRuns, P], T]]:
    """Cache a function of aligned runs in the runs that it is called with.

    Args:
        keep: Forget the oldest results beyond so many; None = keep all.
        key: Makes a key of the other arguments; None = the arguments themselves, hashable.
    """

    def decorate(
        function: Callable[Concatenate[AlignedRuns, P], T],
    ) -> Callable[Concatenate[AlignedRuns, P], T]:
        @wraps(function)
        def cached(runs: AlignedRuns, /, *args: P.args, **kwargs: P.kwargs) -> T:
            called = (args, *kwargs.items()) if key is None else key(*args, **kwargs)
            return runs.cache.lookup(
                function, called, lambda: function(runs, *args, **kwargs), keep
            )

        return cached

    return decorate
