"""The report's curves as one PNG, for a slide or a terminal that shows pictures. Needs matplotlib (extra `train`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from codea1_env.extras import extra
from codea1_env.report.panels import CHAPTERS, Chart, charts_of
from codea1_env.report.runs_read import RunRead
from codea1_env.whole_files import whole_file

COLUMNS = 3
STYLES = ("-", "--", ":", "-.")


def draw(runs: Sequence[RunRead], file: Path, drawn: Callable[[], object] = lambda: None) -> bool:
    """Write the picture, calling `drawn` after each chart; False where there is no curve to draw.

    Raises ImportError without matplotlib, and OSError.
    """
    charts = [chart for panels in CHAPTERS.values() for panel in panels for chart in charts_of(panel, runs)]
    if not charts:
        return False
    with extra("train", "the picture needs", "or --no-png"):
        import matplotlib.figure
    rows = math.ceil(len(charts) / COLUMNS)
    figure = matplotlib.figure.Figure(figsize=(5 * COLUMNS, 3.2 * rows), layout="constrained")
    figure.suptitle(", ".join(run.shown for run in runs), parse_math=False)
    axes = figure.subplots(rows, COLUMNS, squeeze=False)
    for axis, chart in zip(axes.flat, charts, strict=False):
        _draw(axis, chart)
        drawn()
    for axis in list(axes.flat)[len(charts) :]:
        axis.set_visible(False)
    with whole_file(file) as written:
        figure.savefig(written, dpi=100, format="png")
    return True


def _draw(axis: object, chart: Chart) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)
    for line in chart.series:
        across, upwards = zip(*line.points, strict=True)
        mark = "o" if line.has_marks else ""
        dashes, colour = STYLES[line.style % len(STYLES)], f"C{line.style}"
        axis.plot(across, upwards, label=line.label, linestyle=dashes, color=colour, marker=mark, markersize=4)
    if chart.is_share:
        low, high = axis.get_ylim()
        axis.set_ylim(min(low, -0.02), max(high, 1.02))
    axis.set_title(chart.title, parse_math=False)
    axis.set_xlabel("rounds done")
    axis.grid(alpha=0.3)
    for label in axis.legend(fontsize=8).get_texts():
        label.set_parse_math(False)
