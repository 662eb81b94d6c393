"""The bars of the drain, as an SVG."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Reading, Turn
from benchmarks.peers import DRAINED

OWN, OTHER = "#0b6e4f", "#9aa5b1"


def draw(turns: Sequence[Turn], conditions: str, path: Path) -> None:
    """One bar a queue: the median of jobs a second, most first. Refused ones and pgbench are not queues to choose from."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "semel"  # the same figures make the same file
    from matplotlib import pyplot

    bars = sorted(medians(turns).items(), key=lambda bar: bar[1])
    figure, axes = pyplot.subplots(figsize=(8, 0.42 * len(bars) + 1.2))
    colours = [OWN if name == "semel" else OTHER for name, _ in bars]
    drawn = axes.barh([name for name, _ in bars], [value for _, value in bars], color=colours)
    axes.bar_label(drawn, [f"{value:,.0f}" for _, value in bars], padding=4)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(bottom=False, labelbottom=False, left=False)
    axes.margins(x=0.12)
    axes.set_title("No-op jobs a second, one worker process", loc="left", fontsize=11)
    figure.text(0.01, 0.01, conditions, fontsize=7, color="#555555")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def medians(turns: Sequence[Turn]) -> dict[str, float]:
    """By a queue's title; one that was refused once is not among them."""
    found = {}
    for peer in DRAINED:
        values = [each.value for turn in turns if isinstance(each := turn.get(peer.name), Reading)]
        if values and len(values) == len(turns):
            found[peer.title] = statistics.median(values)
    return found
