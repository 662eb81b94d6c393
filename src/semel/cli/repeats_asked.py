"""What the options of ``semel repeats`` ask for, checked, and carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from semel.cli.repeats_given import EXAMPLE, Given, one_of
from semel.core.past import Past
from semel.core.zones import UTC_ZONE
from semel.errors import ConfigurationError
from semel.repeats.deploy_times import read_deploys, read_tags
from semel.repeats.deploys import at_deploys
from semel.repeats.files import FORMATS, File, find_in_file
from semel.repeats.masking import Mask
from semel.repeats.problems import Problems
from semel.repeats.report import Report, Shown
from semel.repeats.suggestions import suggest
from semel.store.past.finding import find_repeats, script
from semel.store.past.reading import dialect_of, open_reader
from semel.store.past.writing import DIALECTS, HistoryTable, split_name

_SQLITE: Final = b"SQLite format 3\0"


class Asked(Given):
    """What they ask for."""

    def find(self) -> Report:
        """Read the source, and say what is found."""
        how = one_of(self.mask, tuple(Mask), "--mask")
        deploys, window = self._deploys(), self.duration(self.deploy_window, "--deploy-window")
        url = self._url()
        past, problems = self._in_database(url) if url else self._in_file()
        self._check(past, problems)
        found = None
        if deploys is not None:
            found = at_deploys(past.buckets, past.step_ms, deploys, round(window.total_seconds() * 1_000))
        return Report(
            Shown(self._shown_source(url), self.wanted.references, Mask(how), self.mask_key),
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
            dialect = one_of(self.dialect, DIALECTS, "--dialect")
        if dialect is None:
            raise ConfigurationError(
                "--sql needs to know for which database.", remedy=f"Add --dialect: {', '.join(DIALECTS)}."
            )
        timeout = self.duration(self.timeout, "--timeout")
        return script(self._history(dialect), timeout, most_listed=max(self.limit, 1))

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
        self.refuse_for_files()
        zone = self.zone_given or UTC_ZONE
        if dialect == "sqlite" and zone.offset is None:
            raise ConfigurationError(
                f"SQLite knows no zones by name: {zone.name}.",
                remedy="Give an offset, such as --zone +02:00.",
            )
        return HistoryTable(
            dialect,
            split_name(self.table),
            self.wanted.references,
            self.wanted.time,
            self.unit,
            zone,
            self.bound(self.since, "--since"),
            self.bound(self.until, "--until"),
        )

    def _in_database(self, url: str) -> tuple[Past, None]:
        dialect = dialect_of(url)
        if dialect is None:
            raise ConfigurationError(
                "The source is a URL that leads to no database that can be read.",
                remedy="Write postgresql://, mysql:// or sqlite:///path, or give a file.",
            )
        table = self._history(dialect)
        with open_reader(url, table.zone, self.duration(self.timeout, "--timeout")) as reader:
            return find_repeats(reader, table, most_listed=self.limit), None

    def _in_file(self) -> tuple[Past, Problems]:
        if self.source is None:
            raise ConfigurationError("There is nothing to read.", remedy=f"For example: {EXAMPLE}")
        if self.table is not None:
            raise ConfigurationError(
                f"{self.source!r} is a file, which has no tables.", remedy="Leave --table out."
            )
        if self.delimiter is not None and len(self.delimiter.replace("\\t", "\t")) != 1:
            raise ConfigurationError("--delimiter is one letter.", remedy=r"Such as ';' or '\t'.")
        file = File(
            self.source,
            self.wanted,
            None if self.format_ is None else one_of(self.format_, FORMATS, "--format"),
            self.pattern,
            None if self.delimiter is None else self.delimiter.replace("\\t", "\t"),
            not self.no_header,
            self.encoding,
            self.zone_given,
            self.unit,
            self.time_format,
            self.bound(self.since, "--since"),
            self.bound(self.until, "--until"),
        )
        return find_in_file(file, most_listed=self.limit)

    def _deploys(self) -> list[int] | None:
        if self.deploys is None and self.deploys_git is None:
            return None
        found = [] if self.deploys is None else read_deploys(self.deploys, self.zone_given)
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
            remedy="Check --reference and --time; for times of another form --time-unit, or "
            + ("a view that makes them times." if problems is None else "--time-format."),
        )
