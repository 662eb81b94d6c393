"""The histogram of gaps as a PNG, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence

from semel.errors import ConfigurationError
from semel.repeats.gaps import Bar, say_duration
from semel.repeats.svg import TITLE


def save_histogram(bars: Sequence[Bar], path: str) -> None:
    """Write the picture. Without matplotlib: a ConfigurationError that names the extra."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigurationError(
            "A PNG is drawn by matplotlib, which is not installed.",
            remedy="Run: pip install 'semel[repeats]'   or write --svg, which needs nothing.",
        ) from None
    figure = Figure(figsize=(max(6.0, len(bars) * 0.7), 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(range(len(bars)), [bar.gaps for bar in bars], color="#2563eb", width=0.9)
    labels = [say_duration(bar.from_ms) if bar.from_ms else "0" for bar in bars]
    axes.set_xticks([place - 0.5 for place in range(len(bars))], labels)
    axes.set_title(TITLE)
    axes.set_xlabel("how far apart (logarithmic)")
    axes.set_ylabel("gaps")
    figure.savefig(path, format="png", dpi=144)
