"""What the bodies of requests may hold."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from pydantic import Field, StrictBool

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.serve.console.setting import Name, Setting
from fusion_bench.util.http.strict_json import parse_strict_json

R = TypeVar("R", bound=StrictModel)

#: Bytes of a body, a hundred times what a page sends.
MOST_BYTES: Final = 200_000


class AnswerRequest(StrictModel):
    """``POST /api/answer``.

    Attributes:
        setting: The setting.
        previous: The one before it.
    """

    setting: Setting
    previous: Setting | None = None


class QueryRequest(StrictModel):
    """``POST /api/query``.

    Attributes:
        query: Id of a tuning query.
        setting: The setting.
        against: What it is compared with; None = the baseline.
    """

    query: Name
    setting: Setting
    against: Setting | None = None


class VerdictRequest(StrictModel):
    """``POST /api/verdict``.

    Attributes:
        setting: The setting.
        confirm: Must be true: a look at the held-out queries is spent.
    """

    setting: Setting
    confirm: StrictBool = False


class SaveRequest(StrictModel):
    """``POST /api/save``.

    Attributes:
        setting: The setting.
        name: Of the file, without its suffix.
        overwrite: Whether a file of that name may be replaced.
        write: False = only show the text and the commands.
    """

    setting: Setting
    name: Annotated[str, Field(max_length=64)]
    overwrite: StrictBool = False
    write: StrictBool = True


def parse_request(model: type[R], body: bytes) -> R:
    """The request in a body.

    Raises:
        ConfigError: It is not strict JSON, or breaks a rule.
    """
    try:
        data = parse_strict_json(body)
    except ValueError as error:
        raise ConfigError(f"body: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError("body: a JSON object is needed")
    return parse_model(model, data)
