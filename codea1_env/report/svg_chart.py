"""Line charts and stacked bars as SVG: no script, no inline style, colours by classes of the page's style sheet.

Pure. Numbers are finite. Lines are told apart by colour and by dashes. Does not promise that every point is drawn: of
thousands, neighbours are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from codea1_env.report.html_text import text
from codea1_env.report.panels import Chart, Series

WIDTH, HEIGHT = 400, 232
RIGHT, TOP, BOTTOM = 12, 10, 40
DIGIT = 7.2
"""Pixels, more than any character of a tick is wide at the style sheet's 12 pixels."""
COLOURS = 8
"""Classes c0 to c7 of the style sheet."""
MOST_POINTS = 300
SMOOTH_FROM = 30
"""Rounds from which a running mean is drawn over the faint line."""
_SMALLEST = 1e-300
"""What is smaller has lost digits, and its share can be 0."""

Point = tuple[float, float]


def line_chart(chart: Chart) -> str:
    """One chart; its numbers in words for whoever does not see it."""
    across = [x for line in chart.series for x, _ in line.points]
    upwards = [y for line in chart.series for _, y in line.points]
    x_ticks = ticks(min([0, *across]), max(across), 6, whole=True)
    y_ticks = ticks(*_range(upwards, chart.is_share), 5)
    left = max(44.0, 10 + DIGIT * max(len(shown(y)) for y in y_ticks))
    place = _Scale(left, x_ticks, y_ticks)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_told(chart)}">']
    for y in y_ticks:
        parts.append(f'<line class="grid" x1="{left:.1f}" x2="{WIDTH - RIGHT}" y1="{place.y(y)}" y2="{place.y(y)}"/>')
        parts.append(f'<text class="tick end" x="{left - 7:.1f}" y="{place.y(y) + 4:.1f}">{shown(y)}</text>')
    for x in x_ticks:
        parts.append(f'<text class="tick mid" x="{place.x(x)}" y="{HEIGHT - BOTTOM + 18}">{shown(x)}</text>')
    parts.append(f'<text class="tick mid" x="{(left + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 5}">rounds done</text>')
    for line in chart.series:
        parts += _line(line, place)
    return "".join([*parts, "</svg>"])


def line_sample(style: int) -> str:
    return f'<line class="line {_classes(style)}" x1="0" x2="28" y1="5" y2="5"/>'


def bar_sample(style: int) -> str:
    return f'<rect class="fill f{style}" width="28" height="10"/>'


def legend(items: Iterable[tuple[int, str]], sample: Callable[[int], str] = line_sample) -> str:
    """A list of samples and what they are. `items`: of each its style and its label."""
    parts = [
        f'<li><svg class="key" viewBox="0 0 28 10" aria-hidden="true">{sample(style)}</svg>{text(label)}</li>'
        for style, label in items
    ]
    return f'<ul class="legend">{"".join(parts)}</ul>'


def stacked_bar(parts: Sequence[tuple[str, float]], most: float) -> str:
    """One horizontal bar of (label, seconds) parts; `most`: what the full width stands for."""
    told = ", ".join(f"{label} {shown(value)} s" for label, value in parts)
    elements = [
        f'<svg class="bar" viewBox="0 0 600 22" preserveAspectRatio="none" role="img" aria-label="{text(told)}">'
    ]
    left = 0.0
    for number, (label, value) in enumerate(parts):
        width = 600 * value / most if most > 0 else 0.0
        elements.append(
            f'<rect class="fill f{number % COLOURS}" x="{left:.1f}" y="0" width="{width:.1f}" height="22">'
            f"<title>{text(label)}: {shown(value)} s</title></rect>"
        )
        left += width
    return "".join([*elements, "</svg>"])


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """At most about `most` round numbers that enclose [low, high], evenly spaced; at least two."""
    span = high - low
    if not span > max(abs(high) * 1e-9, _SMALLEST):
        span = abs(high) if abs(high) > _SMALLEST else 1.0
    step = 10 ** math.floor(math.log10(span / most))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if span / (step * factor) <= most)
    if whole:
        step = max(1, round(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [number * step for number in range(first, last + 1)]


def shown(value: float) -> str:
    """A number as short as it stays clear."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.1f}"


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most MOST_POINTS, each the mean of as many neighbours as any other."""
    size = math.ceil(len(points) / MOST_POINTS)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def smoothed(points: Sequence[Point]) -> list[Point]:
    """A running mean over a fifteenth of the points, centred, shorter at both ends."""
    reach = len(points) // 30
    means = []
    for place, (x, _) in enumerate(points):
        near = points[max(0, place - reach) : place + reach + 1]
        means.append((x, sum(y for _, y in near) / len(near)))
    return means


class _Scale:
    """From numbers to places in the picture."""

    def __init__(self, margin: float, across: Sequence[float], upwards: Sequence[float]) -> None:
        """`margin`: left of the curves, in pixels; the others: the ticks."""
        self._margin = margin
        self._left, self._across = across[0], across[-1] - across[0]
        self._low, self._up = upwards[0], upwards[-1] - upwards[0]

    def x(self, value: float) -> float:
        return round(self._margin + (WIDTH - self._margin - RIGHT) * (value - self._left) / self._across, 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self._low) / self._up, 1)


def _line(line: Series, place: _Scale) -> list[str]:
    points = thinned(line.points)
    is_long = len(points) >= SMOOTH_FROM and not line.has_marks
    drawn = smoothed(points) if is_long else points
    elements = []
    if is_long:
        elements.append(f'<path class="line faint {_classes(line.style)}" d="{_path(points, place)}"/>')
    elements.append(f'<path class="line {_classes(line.style)}" d="{_path(drawn, place)}"/>')
    if line.has_marks:
        elements += [
            f'<circle class="fill f{line.style % COLOURS}" cx="{place.x(x)}" cy="{place.y(y)}" r="3.5">'
            f"<title>{text(line.label)}, round {shown(x)}: {shown(y)}</title></circle>"
            for x, y in points
        ]
    return elements


def _path(points: Sequence[Point], place: _Scale) -> str:
    start = f"M{place.x(points[0][0])} {place.y(points[0][1])}"
    return start + "".join(f"L{place.x(x)} {place.y(y)}" for _, (x, y) in pairwise(points))


def _classes(number: int) -> str:
    return f"c{number % COLOURS} d{(number + number // COLOURS) % 4}"


def _range(values: Sequence[float], is_share: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (min(low, 0.0), max(high, 1.0)) if is_share else (min(low, 0.0), high)


def _told(chart: Chart) -> str:
    lines = [
        f"{line.label}: {shown(line.points[0][1])} in round {line.points[0][0]}, {shown(line.points[-1][1])} in round "
        f"{line.points[-1][0]}"
        for line in chart.series
    ]
    return text(f"{chart.title}. {'; '.join(lines)}")
