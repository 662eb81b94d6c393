"""The report as one page that stands by itself. All that comes from data is escaped; nothing is loaded, no script runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Final

from semel.core.past import RepeatedReference, to_instant
from semel.repeats.deploys import AtDeploys
from semel.repeats.gaps import say_duration
from semel.repeats.report import Report, Told
from semel.repeats.suggestions import say_deploys
from semel.repeats.svg import draw_histogram

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#0f172a;background:#f8fafc;margin:0}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
.from{color:#475569;margin:.2rem 0 1.4rem;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.75rem}
.figures div{background:#fff;border:1px solid #e2e8f0;border-radius:.5rem;padding:.7rem .9rem}
.figures b{display:block;font-size:1.4rem;font-variant-numeric:tabular-nums}
.figures span{color:#475569}
ul{padding-left:1.2rem}li{margin:.35rem 0}li span{color:#475569}
.wide{overflow-x:auto;background:#fff;border:1px solid #e2e8f0;border-radius:.5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .7rem;border-bottom:1px solid #e2e8f0;
vertical-align:top}th{color:#475569;font-weight:600;white-space:nowrap}tr:last-child td{border-bottom:0}
td.number{text-align:right;font-variant-numeric:tabular-nums}td.time{white-space:nowrap}
td.reference{font-family:ui-monospace,monospace;overflow-wrap:anywhere;max-width:24rem}
svg{max-width:100%;height:auto}
""".strip()


def write_page(report: Report, made: datetime) -> str:
    """The whole page."""
    counts = report.past.counts
    body = [
        "<h1>Past repeats</h1>",
        f'<p class="from">{_safe(report.shown.source)} · by {_safe(", ".join(report.shown.columns))} · '
        f"made {made:%Y-%m-%d %H:%M} UTC</p>",
        _figures(report),
        "<h2>What the timing suggests</h2>",
        _suggestions(report),
        "<h2>Gaps</h2>",
        f'<div class="wide">{draw_histogram(report.bars)}</div>',
        f"<h2>Repeated references ({counts.repeated_references:,})</h2>",
        _table(report),
    ]
    told = report.told()
    if told:
        body += ["<h2>Lines to know of</h2>", _items(_problem(one) for one in told)]
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Past repeats: {_safe(report.shown.source)}</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            *body,
            "</main>\n</body>\n</html>\n",
        )
    )


def _figures(report: Report) -> str:
    counts = report.past.counts
    first, last = counts.first_ms, counts.last_ms
    span = (
        ""
        if first is None or last is None
        else f"{to_instant(first):%Y-%m-%d} to {to_instant(last):%Y-%m-%d}"
    )
    cells = (
        (f"{counts.rows:,}", "rows read"),
        (f"{counts.deliveries:,}", f"counted {span}"),
        (f"{counts.references:,}", "different references"),
        (f"{counts.repeated_references:,}", "came more than once"),
        (f"{counts.repeats:,}", "repeats"),
        (f"{counts.without_reference:,}", "without a reference"),
        (f"{counts.without_time + counts.unreadable_time:,}", "without a readable time"),
    )
    return f'<div class="figures">{"".join(f"<div><b>{n}</b><span>{what}</span></div>" for n, what in cells)}</div>'


def _suggestions(report: Report) -> str:
    items = [f"<b>{_safe(one.seen)}</b><br><span>{_safe(one.means)}</span>" for one in report.suggestions]
    if report.deploys is not None and not report.deploys.holds:
        items.append(_no_deploys(report.deploys))
    return _items(items) if items else "<p>Nothing: no reference came more than once.</p>"


def _no_deploys(found: AtDeploys) -> str:
    return (
        f"{_safe(say_deploys(found))}<br><span>not more than chance: deploys are no reason seen here</span>"
    )


def _table(report: Report) -> str:
    if not report.past.listed:
        return "<p>None.</p>"
    heads = "".join(f"<th>{_safe(name)}</th>" for name in report.shown.columns)
    rows = "".join(_row(report, repeated) for repeated in report.past.listed)
    more = f"<p>… and {report.more:,} more.</p>" if report.more > 0 else ""
    return (
        f'<div class="wide"><table><thead><tr>{heads}<th>Deliveries</th><th>First (UTC)</th><th>Last (UTC)</th>'
        f"<th>Gaps</th></tr></thead><tbody>{rows}</tbody></table></div>{more}"
    )


def _row(report: Report, repeated: RepeatedReference) -> str:
    names = "".join(f'<td class="reference">{_safe(part)}</td>' for part in report.reference(repeated))
    return (
        f'<tr>{names}<td class="number">{repeated.deliveries:,}</td>'
        f'<td class="time">{to_instant(repeated.first_ms):%Y-%m-%d %H:%M:%S}</td>'
        f'<td class="time">{to_instant(repeated.last_ms):%Y-%m-%d %H:%M:%S}</td>'
        f"<td>{_safe(say_gaps(repeated))}</td></tr>"
    )


def say_gaps(repeated: RepeatedReference, most: int = 3) -> str:
    """The first gaps, and how many more there are."""
    shown = [say_duration(gap) for gap in repeated.gaps_ms[:most]]
    more = repeated.deliveries - 1 - len(shown)
    return ", ".join(shown) + (f", {more:,} more" if more > 0 else "")


def say_lines(told: Told) -> str:
    """The first line numbers."""
    numbers = ", ".join(f"{line:,}" for line in told.first_lines)
    return f"{numbers}{', …' if told.lines > len(told.first_lines) else ''}"


def _problem(told: Told) -> str:
    counted = "" if told.counted else " <b>not counted</b>"
    return f"{told.lines:,} {_safe(told.says)}{counted}: line {_safe(say_lines(told))}"


def _items(items: Iterable[str] | Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _safe(text: str) -> str:
    """Escaped; what a page cannot hold or would obey as a control is shown as a code."""
    shown = "".join(
        letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text.replace("\n", " ")
    )
    return escape(shown)
