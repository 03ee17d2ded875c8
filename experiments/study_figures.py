"""The study's pictures, one a claim, from what its cells left. Draws every arm that there is and says nothing of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
from study_arms import ALPHAS
from study_report import DIAGNOSED, MAIN, SHOWN, Place, Runs, Scores, column

from codea1_env.bench.estimates import by_base, mean_by_base

Arms = Mapping[str, Runs]
"""Of one preset: arm, place, measure."""
Curves = Mapping[str, Mapping[Place, Mapping[int, float]]]
"""Of one preset: arm, place, rounds done, the coder's hidden pass rate."""
FOLLOWED = ("golden", "hidden", "frozen", "black_box", MAIN, "frozen_trained", "self_play")
"""Arms whose way is drawn."""
DOTTED = ("hidden", "input_kills", "regressions")
NAMES = SHOWN | DIAGNOSED


def draw_all(scores: Scores, curves: Mapping[str, Curves], order: Sequence[str], directory: Path) -> list[Path]:
    """All pictures that there is something for. The files, PRESET-WHAT.png."""
    written = []
    for preset, arms in scores.items():
        pictures: dict[str, Any] = {measure: _dots(arms, order, measure) for measure in DOTTED}
        pictures["alpha"], pictures["effective-alpha"] = _sweep(arms), _effective_alpha(arms)
        pictures["collusion"] = _reward_against_truth(arms, order)
        pictures["curves"] = _ways(curves.get(preset, {}))
        for name, figure in pictures.items():
            if figure is not None:
                written.append(directory / f"{preset}-{name.replace('_', '-')}.png")
                figure.savefig(written[-1], dpi=90)
    return written


def _figure(width: float, height: float) -> tuple[Any, Any]:
    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _dots(arms: Arms, order: Sequence[str], measure: str) -> Any:
    """A row an arm: its seeds, their mean and its interval."""
    names = [arm for arm in order if arm in arms and column(arms[arm], measure)]
    if not names:
        return None
    figure, axis = _figure(8, 1.2 + 0.3 * len(names))
    for place, arm in enumerate(reversed(names)):
        values = list(column(arms[arm], measure).values())
        found = mean_by_base(by_base(column(arms[arm], measure)))
        axis.plot(values, [place] * len(values), "o", color="tab:grey", alpha=0.6)
        axis.plot([found.value], [place], "D", color="tab:blue")
        if not math.isnan(found.low):
            axis.plot([max(found.low, 0.0), min(found.high, 1.0)], [place, place], color="tab:blue")
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.grid(axis="x", alpha=0.3)
    axis.set_title(f"{NAMES[measure]} (dots: runs; line: 95 %)")
    return figure


def _swept(arms: Arms) -> dict[float, Runs]:
    return {alpha: arms[f"alpha_{alpha}"] for alpha in ALPHAS if f"alpha_{alpha}" in arms}


def _sweep(arms: Arms) -> Any:
    swept = _swept(arms)
    if len(swept) < 2:
        return None
    figure, axis = _figure(7, 4)
    for measure in ("hidden", "valid", "input_kills"):
        points = [(a, mean_by_base(v).value) for a in sorted(swept) if (v := by_base(column(swept[a], measure)))]
        axis.plot(*zip(*points, strict=True), marker="o", label=NAMES[measure])
    axis.set_xlabel("alpha")
    axis.set_title("the weight of validity")
    axis.legend()
    return figure


def _effective_alpha(arms: Arms) -> Any:
    """What is left of alpha where the book's share of the reward is cancelled."""
    swept = {alpha: v for alpha, runs in _swept(arms).items() if (v := by_base(column(runs, "effective_alpha")))}
    if len(swept) < 2:
        return None
    figure, axis = _figure(6, 4)
    line = np.linspace(0, 1)
    axis.plot(line, 2 * line / (1 + line), color="tab:grey", label="2 alpha / (1 + alpha): every group with replays")
    axis.plot(line, line, ":", color="tab:grey", label="alpha: no group with replays")
    axis.plot(list(swept), [mean_by_base(v).value for v in swept.values()], "o", color="tab:blue", label="measured")
    axis.set_xlabel("alpha")
    axis.set_title("effective alpha")
    axis.legend()
    return figure


def _reward_against_truth(arms: Arms, order: Sequence[str]) -> Any:
    """A dot a run: what it was paid in the end, and what it can do."""
    names = [arm for arm in order if arm in arms and column(arms[arm], "last_reward")]
    if not names:
        return None
    figure, axis = _figure(8.5, 5)
    markers = "osD^v<>PX"  # 9, beside 20 colours: no two arms look alike
    for place, arm in enumerate(names):
        rewards, hidden = column(arms[arm], "last_reward"), column(arms[arm], "hidden")
        points = [(rewards[run], hidden[run]) for run in rewards]
        colour = matplotlib.colormaps["tab20"](place % 20)
        axis.plot(*zip(*points, strict=True), markers[place % len(markers)], color=colour, label=arm)
    axis.set_xlabel(NAMES["last_reward"])
    axis.set_ylabel(NAMES["hidden"])
    axis.set(xlim=(0, 1.02), ylim=(0, 1.02))
    axis.set_title("what it is paid, and what it can do")
    figure.legend(loc="outside right upper", fontsize=7)
    return figure


def _ways(curves: Curves) -> Any:
    """Held-out problems on the way, the mean over runs; the last point is from all of them, the others from fewer."""
    names = [arm for arm in FOLLOWED if arm in curves]
    if not names:
        return None
    figure, axis = _figure(7.5, 4.5)
    for arm in names:
        runs = list(curves[arm].values())
        rounds = sorted(set.intersection(*(set(run) for run in runs)))
        axis.plot(rounds, [float(np.mean([run[r] for run in runs])) for r in rounds], marker="o", label=arm)
    axis.set_xlabel("rounds")
    axis.set_title("coder: hidden, held-out problems on the way (mean over runs)")
    axis.legend()
    return figure
