"""What the options of ``semel repeats`` ask for, checked, and carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from semel.cli.choices import parse_when
from semel.core.durations import to_timedelta
from semel.core.past import Past, to_milliseconds
from semel.core.zones import Zone, to_zone
from semel.errors import ConfigurationError
from semel.repeats.deploy_times import read_deploys, read_tags
from semel.repeats.deploys import at_deploys
from semel.repeats.files import FORMATS, File, find_in_file
from semel.repeats.formats import Wanted
from semel.repeats.masking import Mask
from semel.repeats.problems import Problems
from semel.repeats.report import Report, Shown
from semel.repeats.suggestions import suggest
from semel.repeats.times import UNITS
from semel.store.past.finding import MINUTE_MS, find_repeats, script
from semel.store.past.reading import dialect_of, open_reader
from semel.store.past.writing import DIALECTS, HistoryTable, split_name

_SQLITE: Final = b"SQLite format 3\0"
_EXAMPLE: Final = "semel repeats payments.csv --reference order_id --time created_at"


@dataclass(frozen=True)
class Asked:
    """The options as they were given."""

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
    def of(cls, given: Mapping[str, Any]) -> Asked:
        """From all that the command was given; what is not asked of the data is left out."""
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def find(self) -> Report:
        """Read the source, and say what is found."""
        how = _one_of(self.mask, tuple(Mask), "--mask")
        deploys, window = self._deploys(), self._duration(self.deploy_window, "--deploy-window")
        url = self._url()
        past, problems = self._in_database(url) if url else self._in_file()
        self._check(past, problems)
        found = None
        if deploys is not None:
            found = at_deploys(past.buckets, past.step_ms, deploys, round(window.total_seconds() * 1_000))
        return Report(
            Shown(self._shown_source(url), self._wanted.references, Mask(how), self.mask_key),
            past,
            tuple(suggest(past, found)),
            found,
            problems,
        )

    def to_sql(self) -> str:
        """What would be run on the database, as a script to run elsewhere."""
        url = self._url()
        dialect = dialect_of(url) if url else None
        if self.dialect is not None:
            dialect = _one_of(self.dialect, DIALECTS, "--dialect")
        if dialect is None:
            raise ConfigurationError(
                "--sql needs to know for which database.", remedy=f"Add --dialect: {', '.join(DIALECTS)}."
            )
        timeout = self._duration(self.timeout, "--timeout")
        return script(self._history(dialect), timeout, most_listed=max(self.limit, 1))

    @cached_property
    def _wanted(self) -> Wanted:
        if not self.reference or not self.time:
            raise ConfigurationError(
                "Say what names one operation, and when it was delivered.", remedy=f"For example: {_EXAMPLE}"
            )
        if len(self.reference) > 8:
            raise ConfigurationError(
                "A reference has at most 8 parts.", remedy="Make a view that joins them."
            )
        return Wanted(tuple(self.reference), self.time)

    @cached_property
    def _zone(self) -> Zone | None:
        return None if self.zone is None else to_zone(self.zone)

    def _url(self) -> str | None:
        """The database's, where the source is one. A SQLite file is known by its first bytes."""
        if self.source is None:
            return None
        if "://" in self.source:
            return self.source
        try:
            with Path(self.source).open("rb") as file:
                is_sqlite = file.read(len(_SQLITE)) == _SQLITE
        except (OSError, ValueError):
            return None
        return f"sqlite:///{quote(self.source)}" if is_sqlite else None

    def _shown_source(self, url: str | None) -> str:
        """Without a password."""
        if url is None:
            return "standard input" if self.source == "-" else str(self.source)
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}, {self.table}"

    def _history(self, dialect: str) -> HistoryTable:
        if self.table is None:
            raise ConfigurationError("A database has many tables.", remedy="Say which: --table shop.orders")
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
        zone = self._zone or to_zone("UTC")
        if dialect == "sqlite" and zone.offset is None:
            raise ConfigurationError(
                f"SQLite knows no zones by name: {zone.name}.",
                remedy="Give an offset, such as --zone +02:00.",
            )
        return HistoryTable(
            dialect,
            split_name(self.table),
            self._wanted.references,
            self._wanted.time,
            self._unit,
            zone,
            self._bound(self.since, "--since"),
            self._bound(self.until, "--until"),
        )

    @property
    def _unit(self) -> str | None:
        return None if self.time_unit is None else _one_of(self.time_unit, tuple(UNITS), "--time-unit")

    def _in_database(self, url: str) -> tuple[Past, None]:
        dialect = dialect_of(url)
        if dialect is None:
            raise ConfigurationError(
                "The source is a URL that leads to no database that can be read.",
                remedy="Write postgresql://, mysql:// or sqlite:///path, or give a file.",
            )
        table = self._history(dialect)
        with open_reader(url, table.zone, self._duration(self.timeout, "--timeout")) as reader:
            return find_repeats(reader, table, most_listed=self.limit), None

    def _in_file(self) -> tuple[Past, Problems]:
        if self.source is None:
            raise ConfigurationError("There is nothing to read.", remedy=f"For example: {_EXAMPLE}")
        if self.table is not None:
            raise ConfigurationError(
                f"{self.source!r} is a file, which has no tables.", remedy="Leave --table out."
            )
        if self.delimiter is not None and len(self.delimiter.replace("\\t", "\t")) != 1:
            raise ConfigurationError("--delimiter is one letter.", remedy=r"Such as ';' or '\t'.")
        file = File(
            self.source,
            self._wanted,
            None if self.format_ is None else _one_of(self.format_, FORMATS, "--format"),
            self.pattern,
            None if self.delimiter is None else self.delimiter.replace("\\t", "\t"),
            not self.no_header,
            self.encoding,
            self._zone,
            self._unit,
            self.time_format,
            self._bound(self.since, "--since"),
            self._bound(self.until, "--until"),
        )
        return find_in_file(file, most_listed=self.limit)

    def _bound(self, text: str | None, option: str) -> int | None:
        """A date in --zone, where it says none, or so long ago."""
        when = parse_when(text, option) if self._zone is None or text is None else self._in_zone(text, option)
        if when is None:
            return None
        return to_milliseconds(datetime.now(UTC) - when if isinstance(when, timedelta) else when)

    def _in_zone(self, text: str, option: str) -> datetime | timedelta | None:
        assert self._zone is not None
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            return parse_when(text, option)
        return instant.replace(tzinfo=self._zone.rules) if instant.tzinfo is None else instant

    def _deploys(self) -> list[int] | None:
        if self.deploys is None and self.deploys_git is None:
            return None
        found = [] if self.deploys is None else read_deploys(self.deploys, self._zone)
        return found + ([] if self.deploys_git is None else read_tags(self.deploys_git, self.deploys_tags))

    def _check(self, past: Past, problems: Problems | None) -> None:
        """Where nothing could be counted, that nothing repeats says nothing."""
        counts = past.counts
        if counts.deliveries or not counts.rows:
            return
        why = ""
        if problems is not None:
            why = "; ".join(f"{kind.count:,} {name}" for name, kind in problems.kinds.items())
        raise ConfigurationError(
            f"None of {counts.rows:,} rows has a reference and a time that can be read"
            f"{f' ({why})' if why else ''}.",
            remedy="Check --reference and --time; for times of another form --time-unit or --time-format.",
        )

    @staticmethod
    def _duration(text: str, option: str) -> timedelta:
        duration = to_timedelta(text, name=option)
        if option == "--deploy-window" and duration < timedelta(milliseconds=MINUTE_MS):
            raise ConfigurationError(
                f"{option} is less than a minute.", remedy="Times are compared by the minute."
            )
        if not duration:
            raise ConfigurationError(f"{option} is no time at all.", remedy='For example "60 s".')
        return duration


def _one_of(word: str, known: tuple[str, ...], option: str) -> str:
    if word not in known:
        raise ConfigurationError(f"{option} is {word!r}.", remedy=f"One of: {', '.join(known)}.")
    return word
