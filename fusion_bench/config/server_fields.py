"""Checks of every configuration of a server: its URL, and the name of the variable with its key."""

from __future__ import annotations

import re
from typing import Final

from pydantic import ValidationInfo, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.errors import ConfigError
from fusion_bench.util.http_client import check_url

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class ServerModel(StrictModel):
    """A configuration with a ``base_url`` or ``url``, and a ``key``: a variable's name, or None."""

    @field_validator("base_url", "url", check_fields=False)
    @classmethod
    def _check_url(cls, value: str, info: ValidationInfo) -> str:
        try:
            return check_url(value, name=info.field_name or "url")
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("key", mode="before", check_fields=False)
    @classmethod
    def _check_key_name(cls, value: object) -> object:
        """The name of a variable; whatever else is given may be a key, and is not shown.

        Raises:
            ValueError: It is no such name.
        """
        if value is None or (isinstance(value, str) and _NAME.fullmatch(value)):
            return value
        raise ValueError(
            "the name of an environment variable is needed, such as MY_API_KEY, which holds the "
            "API key (what was given is not shown)"
        )


class HttpServerModel(ServerModel):
    """A server that is asked by HTTP.

    Attributes:
        allow_http: Whether a key may be sent to another machine without TLS, where whoever is
            between reads it.
    """

    allow_http: bool = False
