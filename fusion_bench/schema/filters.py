"""What a search is limited to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.errors import ConfigError
from fusion_bench.schema._base import Record, Score, Texts
from fusion_bench.schema.ids import FileId


def _read_moment(value: object) -> object:
    """A text as the moment that it means; pydantic takes ``"2024"`` for seconds since 1970."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise PydanticCustomError(
                "moment", "a date or time is needed, such as 2024-01-31T09:30:00Z"
            ) from None
    return _set_zone(value) if isinstance(value, datetime) else value


def _set_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


#: A moment, or its text in ISO 8601; without a zone it is UTC, as a day is in JavaScript.
Moment: TypeAlias = Annotated[datetime, BeforeValidator(_read_moment)]
#: The least relevance of a result, where a search does not say.
MIN_RELEVANCE = 0.3


class DateRange(Record):
    """From one moment to another, both included (REQ-TYPE-003).

    A date without a time is its first moment in UTC, as JavaScript's ``Date`` reads it:
    ``2024-12-31`` as the end leaves out noon of that day, ``2024-12-31T23:59:59.999Z`` does not.

    Attributes:
        start: The first moment; None = open.
        end: The last moment; None = open.
    """

    start: Moment | None = None
    end: Moment | None = None

    @model_validator(mode="after")
    def _check_order(self) -> DateRange:
        if self.start is not None and self.end is not None and self.start > self.end:
            raise PydanticCustomError("date_range", "start must be before or equal to end")
        return self

    def contains(self, moment: datetime) -> bool:
        """Whether a moment lies in it.

        Raises:
            ConfigError: It is no ``datetime``.
        """
        if not isinstance(moment, datetime):
            raise ConfigError(
                f"contains: a datetime is needed, given {moment!r}: read a text with "
                "datetime.fromisoformat"
            )
        moment = _set_zone(moment)
        is_early = self.start is not None and moment < self.start
        is_late = self.end is not None and moment > self.end
        return not (is_early or is_late)


class SearchFilters(Record):
    """What a result must be to count (REQ-TYPE-002).

    Attributes:
        file_ids: Files to search in; None or empty = all.
        entity_types: Types of entities to search for; None = all.
        date_range: When; None = ever.
        min_relevance: Results that score below this are dropped.
    """

    file_ids: Annotated[tuple[FileId, ...], Field(strict=False)] | None = None
    entity_types: Texts | None = None
    date_range: DateRange | None = None
    min_relevance: Score = MIN_RELEVANCE

    if TYPE_CHECKING:  # so that a type checker refuses ids of another kind

        def __init__(
            self,
            *,
            file_ids: Sequence[FileId] | None = None,
            entity_types: Sequence[str] | None = None,
            date_range: DateRange | None = None,
            min_relevance: float = MIN_RELEVANCE,
        ) -> None: ...

    def accepts_file(self, file_id: FileId) -> bool:
        """Whether a file is searched."""
        return not self.file_ids or file_id in self.file_ids
