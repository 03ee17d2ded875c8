"""Entries as bars with intervals, a panel for each seat and set of questions. Needs matplotlib (extra `train`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codea1_env.evaluation.metrics import Interval
from codea1_env.extras import extra
from codea1_env.whole_files import whole_file

COLOURS = ("#1f5f8b", "#9db4c8", "#c78f3e", "#e3c9a0")

Panel = Mapping[str, Mapping[str, Interval]]
"""By measure and entry."""


def draw_bars(title: str, entries: Sequence[str], panels: Mapping[str, Panel], file: Path) -> None:
    """Write the picture, as .png or .svg. Raises MissingExtra and OSError."""
    with extra("train", "the picture needs"):
        import matplotlib.figure
    figure = matplotlib.figure.Figure(figsize=(11, 3.4 * len(panels)), layout="constrained")
    figure.suptitle(title, parse_math=False)
    for axis, (name, panel) in zip(figure.subplots(len(panels), 1, squeeze=False).flat, panels.items(), strict=True):
        width = 0.8 / len(panel)
        for place, (measure, bars) in enumerate(panel.items()):
            across = [entries.index(each) + (place - (len(panel) - 1) / 2) * width for each in bars]
            means = [found.mean for found in bars.values()]
            ends = [[f.mean - f.low for f in bars.values()], [f.high - f.mean for f in bars.values()]]
            colour = COLOURS[place % len(COLOURS)]
            drawn = axis.bar(across, means, width * 0.95, yerr=ends, label=measure, color=colour, ecolor="#555555")
            axis.bar_label(drawn, fmt="%.0f", padding=2, fontsize="small")
        axis.set_title(name, parse_math=False)
        axis.set_ylabel("%")
        axis.set_xticks(range(len(entries)), list(entries))
        axis.set_ylim(0, 1.3 * axis.get_ylim()[1])  # room for the legend
        axis.legend(frameon=False, loc="upper center", ncols=4, fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    with whole_file(file) as written:
        figure.savefig(written, dpi=100, format=file.suffix.removeprefix("."))
