"""The options of ``semel repeats`` as they were given, and what each of them says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final, Self

from semel.cli.choices import parse_when
from semel.core.durations import to_timedelta
from semel.core.past import to_milliseconds
from semel.core.zones import UTC_ZONE, Zone, to_zone
from semel.errors import ConfigurationError
from semel.repeats.formats import Wanted
from semel.repeats.times import UNITS

EXAMPLE: Final = "semel repeats payments.csv --reference order_id --time created_at"


@dataclass(frozen=True)
class Given:
    """The options, and their values checked."""

    source: str | None
    reference: list[str] | None
    time: str | None
    table: str | None
    since: str | None
    until: str | None
    limit: int
    mask: str
    mask_key: str
    deploys: str | None
    deploys_git: str | None
    deploys_tags: str
    deploy_window: str
    zone: str | None
    time_unit: str | None
    time_format: str | None
    format_: str | None
    pattern: str | None
    delimiter: str | None
    no_header: bool
    encoding: str | None
    timeout: str
    dialect: str | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """From all that the command was given; what is not asked of the data is left out."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    @cached_property
    def wanted(self) -> Wanted:
        if not self.reference or not self.time:
            raise ConfigurationError(
                "Say what names one operation, and when it was delivered.", remedy=f"For example: {EXAMPLE}"
            )
        if len(self.reference) > 8:
            raise ConfigurationError(
                "A reference has at most 8 parts.", remedy="Make a view that joins them."
            )
        return Wanted(tuple(self.reference), self.time)

    @cached_property
    def zone_given(self) -> Zone | None:
        return None if self.zone is None else to_zone(self.zone)

    @property
    def unit(self) -> str | None:
        return None if self.time_unit is None else one_of(self.time_unit, tuple(UNITS), "--time-unit")

    def refuse_for_files(self) -> None:
        """Refuses what a database has no use for."""
        unknown = [
            option
            for option, given in (
                ("--time-format", self.time_format),
                ("--format", self.format_),
                ("--pattern", self.pattern),
                ("--delimiter", self.delimiter),
                ("--encoding", self.encoding),
                ("--no-header", self.no_header),
            )
            if given
        ]
        if unknown:
            raise ConfigurationError(f"{unknown[0]} is for files.", remedy="Leave it out, or make a view.")

    def bound(self, text: str | None, option: str) -> int | None:
        """A date, in --zone or UTC where it says none, or so long ago; in ms since 1970."""
        if text is None:
            return None
        try:
            instant: datetime | timedelta | None = datetime.fromisoformat(text)
        except ValueError:
            instant = parse_when(text, option)
        if isinstance(instant, timedelta):
            return to_milliseconds(datetime.now(UTC) - instant)
        assert instant is not None
        zone = self.zone_given or UTC_ZONE
        return to_milliseconds(instant.replace(tzinfo=zone.rules) if instant.tzinfo is None else instant)

    @staticmethod
    def duration(text: str, option: str) -> timedelta:
        duration = to_timedelta(text, name=option)
        if option == "--deploy-window" and duration < timedelta(milliseconds=60_000):
            raise ConfigurationError(
                f"{option} is less than a minute.", remedy="Times are compared by the minute."
            )
        if not duration:
            raise ConfigurationError(f"{option} is no time at all.", remedy='For example "60 s".')
        return duration


def one_of(word: str, known: tuple[str, ...], option: str) -> str:
    if word not in known:
        raise ConfigurationError(f"{option} is {word!r}.", remedy=f"One of: {', '.join(known)}.")
    return word
