"""The histogram of gaps as an SVG: bars between round durations, which lie about evenly on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from semel.repeats.gaps import Bar, say_duration

_BAR: Final = 54
_HEIGHT: Final = 220
_LEFT: Final = 16
_TOP: Final = 44
TITLE: Final = "Gaps between deliveries of one reference"
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#334155}.title{font-size:15px;font-weight:600;fill:#0f172a}"
    ".bar{fill:#2563eb}.axis{stroke:#94a3b8}"
)


def draw_histogram(bars: Sequence[Bar]) -> str:
    """A picture that stands by itself: no script, no font or file from elsewhere."""
    width = max(360, _LEFT * 2 + _BAR * max(len(bars), 1) + 30)
    bottom = _TOP + _HEIGHT
    largest = max((bar.gaps for bar in bars), default=1)
    drawn = [part for place, bar in enumerate(bars) for part in _bar(place, bar, largest, bottom)]
    if not bars:
        drawn = [f'<text x="{_LEFT}" y="{_TOP + 40}">No reference came more than once.</text>']
    elif bars[-1].to_ms is not None:
        drawn.append(_label(len(bars), say_duration(bars[-1].to_ms), bottom))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 56}" width="{width}" '
            f'height="{bottom + 56}" role="img" aria-label="{TITLE}">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{width}" height="{bottom + 56}" fill="#ffffff"/>',
            f'<text class="title" x="{_LEFT}" y="24">{TITLE}</text>',
            *drawn,
            f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{width - _LEFT}" y2="{bottom}"/>',
            f'<text x="{_LEFT}" y="{bottom + 44}">how far apart (logarithmic), and how many</text>',
            "</svg>\n",
        )
    )


def _bar(place: int, bar: Bar, largest: int, bottom: int) -> list[str]:
    height = 0.0 if not bar.gaps else max(2.0, (_HEIGHT - 18) * bar.gaps / largest)
    x = _LEFT + 14 + place * _BAR
    end = "" if bar.to_ms is None else f" to {say_duration(bar.to_ms)}"
    count = (
        f'<text x="{x + _BAR / 2 - 2}" y="{bottom - height - 5:.1f}" text-anchor="middle">{bar.gaps:,}</text>'
    )
    return [
        f'<rect class="bar" x="{x}" y="{bottom - height:.1f}" width="{_BAR - 4}" height="{height:.1f}">'
        f"<title>{say_duration(bar.from_ms)}{end}: {bar.gaps:,}</title></rect>",
        *([count] if bar.gaps else []),
        _label(place, say_duration(bar.from_ms) if bar.from_ms else "0", bottom),
    ]


def _label(place: int, text: str, bottom: int) -> str:
    return f'<text x="{_LEFT + 12 + place * _BAR}" y="{bottom + 18}" text-anchor="middle">{text}</text>'
