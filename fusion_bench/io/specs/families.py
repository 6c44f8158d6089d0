"""The model family behind a list or a judge, such as ``gpt``."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def _normalize_family(name: str) -> str:
    plain = name.strip().casefold()
    if not NAME.fullmatch(plain):
        raise ValueError(
            f"{name!r} is no family of models: name it in letters, digits, '.', '_' and '-', "
            "such as gpt or llama-3"
        )
    return plain


#: One name for a family, in lower case: ``GPT`` and ``gpt`` are the same.
Family: TypeAlias = Annotated[str, AfterValidator(_normalize_family)]
