"""``semel repeats``: which references came more than once, in a table or a file, and what their timing suggests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import AsJson
from semel.cli.group import NOT_SO

if TYPE_CHECKING:
    from semel.repeats.report import Report

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        envvar="SEMEL_DATABASE_URL",
        help="postgresql://, mysql://, sqlite:///path, a file (CSV, JSON lines, logfmt, a log), or - for standard input.",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference", "-r", metavar="COLUMN", help="What names one operation; again for more parts."
    ),
]
TimeColumn = Annotated[
    str | None, typer.Option("--time", "-t", metavar="COLUMN", help="When it was delivered.")
]
TableName = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="The table or view: orders, or shop.orders.")
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="csv, jsonl, logfmt or pattern.")
]
Pattern = Annotated[
    str | None, typer.Option("--pattern", metavar="REGEX", help="For logs: an expression with named groups.")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="LETTER", help="CSV's; else told from the first line.")
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="CSV without a header: columns are 1, 2, … from the left.")
]
Encoding = Annotated[str | None, typer.Option("--encoding", metavar="NAME", help="The file's [utf-8].")]
ZoneName = Annotated[
    str | None,
    typer.Option("--zone", metavar="ZONE", help="Of times that say none: Europe/London, +02:00 [UTC]."),
]
Unit = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="UNIT", help="The time is a number since 1970: s, ms, us, ns."),
]
TimeFormat = Annotated[
    str | None,
    typer.Option("--time-format", metavar="FORMAT", help="A file's times, as strptime reads them."),
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help='Not before: a date, or "30 days" ago.')
]
Until = Annotated[str | None, typer.Option("--until", metavar="WHEN", help="Only before.")]
Timeout = Annotated[str, typer.Option("--timeout", metavar="TIME", help="Of each statement on a database.")]
Limit = Annotated[int, typer.Option("--limit", min=0, max=100_000, help="List at most so many references.")]
MaskOption = Annotated[str, typer.Option("--mask", metavar="HOW", help="References as: none, hash, partial.")]
MaskKey = Annotated[
    str,
    typer.Option("--mask-key", envvar="SEMEL_MASK_KEY", metavar="TEXT", help="What hashes are made with."),
]
Deploys = Annotated[
    str | None, typer.Option("--deploys", metavar="FILE", help="Times of deploys, one a line.")
]
DeploysGit = Annotated[
    str | None, typer.Option("--deploys-git", metavar="DIR", help="Deploys are the tags of this repository.")
]
Tags = Annotated[str, typer.Option("--deploys-tags", metavar="GLOB", help="Only these tags.")]
Window = Annotated[
    str, typer.Option("--deploy-window", metavar="TIME", help="How long after a deploy belongs to it.")
]
Sql = Annotated[bool, typer.Option("--sql", help="Print the SQL instead of running it; connects to nothing.")]
Dialect = Annotated[
    str | None, typer.Option("--dialect", metavar="NAME", help="For --sql: postgresql, mysql or sqlite.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")]
Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write the histogram as SVG.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write the histogram as PNG.")]


# fmt: off
def repeats(
    source: Source = None, reference: References = None, time: TimeColumn = None, table: TableName = None,
    since: Since = None, until: Until = None, limit: Limit = 20, mask: MaskOption = "none", mask_key: MaskKey = "",
    deploys: Deploys = None, deploys_git: DeploysGit = None, deploys_tags: Tags = "*",
    deploy_window: Window = "10 min", zone: ZoneName = None, time_unit: Unit = None, time_format: TimeFormat = None,
    format_: Format = None, pattern: Pattern = None, delimiter: Delimiter = None, no_header: NoHeader = False,
    encoding: Encoding = None, timeout: Timeout = "60 s", sql: Sql = False, dialect: Dialect = None,
    html: Html = None, svg: Svg = None, png: Png = None, as_json: AsJson = False,
) -> None:
    """Find what came more than once in a table or a file, and say what the timing suggests.

    Reads only, sends nothing anywhere. The exit code is 1 where a reference repeats, 0 where none does.

    Example: semel repeats payments.csv --reference order_id --time created_at
    """
    given = dict(locals())
    from semel.cli.repeats_asked import Asked

    asked = Asked.of(given)
    if sql:
        typer.echo(asked.to_sql(), nl=False)
        return
    report = asked.find()
    _write(report, html=html, svg=svg, png=png)
    _print(report, as_json=as_json)
    if report.past.counts.repeats:
        raise typer.Exit(NOT_SO)
# fmt: on


def _write(report: Report, *, html: Path | None, svg: Path | None, png: Path | None) -> None:
    from datetime import UTC, datetime

    from semel.errors import ConfigurationError

    try:
        if html is not None:
            from semel.repeats.html import write_page

            html.write_text(write_page(report, datetime.now(UTC)), "utf-8")
        if svg is not None:
            from semel.repeats.svg import draw_histogram

            svg.write_text(draw_histogram(report.bars), "utf-8")
        if png is not None:
            from semel.repeats.png import save_histogram

            save_histogram(report.bars, str(png))
    except OSError as error:
        raise ConfigurationError(
            f"{error.filename} cannot be written: {error.strerror}.", remedy="Check the path."
        ) from error


def _print(report: Report, *, as_json: bool) -> None:
    if as_json:
        from semel.cli.output import print_json

        print_json(report.to_json())
        return
    from semel.cli.repeats_shown import show

    show(report)
