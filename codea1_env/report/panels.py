"""Which curves a report shows, in which order, and what to read in them. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codea1_env.report.runs_read import RunRead

FEW = 20
"""Points."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that share axes."""

    title: str
    text: str
    """One sentence: what to look for."""
    curves: tuple[tuple[str, str], ...]
    """(name of the metric, label)."""
    kind: str = "round"
    """Of the records that have them."""
    seat: str = ""
    is_share: bool = True
    """The axis is [0, 1] unless the numbers leave it."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart."""

    label: str
    points: tuple[tuple[int, float], ...]
    """(rounds done, value)."""
    style: int
    """Number of its colour and dashes: of a run the same in every chart of the page, whatever other runs lack there."""

    @property
    def has_marks(self) -> bool:
        """So few points that each is shown: evaluations."""
        return len(self.points) <= FEW


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture."""

    title: str
    series: tuple[Series, ...]
    is_share: bool


def _seat_panels(seat: str) -> tuple[Panel, ...]:
    return (
        Panel(
            f"{seat}: entropy and truncation",
            "Entropy that falls to zero has stopped exploring; truncated responses cannot be right.",
            (("entropy", "entropy, nats"), ("truncated", "truncated, share")),
            kind="seat",
            seat=seat,
            is_share=False,
        ),
        Panel(
            f"{seat}: distance from the base",
            "The estimate of the divergence from the base model, and the norm of the gradient.",
            (("kl", "KL, nats a token"), ("grad_norm", "gradient norm")),
            kind="seat",
            seat=seat,
            is_share=False,
        ),
    )


CHAPTERS: Mapping[str, tuple[Panel, ...]] = {
    "Held-out problems": (
        Panel(
            "coder",
            "No seat is paid for these, so they show whether the coder got better.",
            (
                ("hidden_pass_rate", "passes every hidden test"),
                ("hidden_tests_passed", "hidden tests passed"),
                ("golden_pass_rate", "passes every golden test"),
                ("executes", "loads"),
            ),
            kind="evaluation",
            seat="coder",
        ),
        Panel(
            "tester",
            "Against mutants of held-out references: whether its aim carries over to new questions.",
            (
                ("validity", "valid tests"),
                ("kill_rate", "valid tests that kill"),
                ("killed", "suites that kill"),
                ("input_kill_rate", "inputs that kill"),
            ),
            kind="evaluation",
            seat="tester",
        ),
    ),
    "Rewards": (
        Panel(
            "both seats",
            "A gain of one seat is partly a loss of the other, so compare the held-out scores.",
            (
                ("coder_reward", "coder, R_C"),
                ("tester_reward", "tester, R_T, all suites"),
                ("tester_reward_selected", "tester, R_T, learnt from"),
            ),
        ),
        Panel(
            "what the tester is paid for",
            "R_T is the sum of the first two minus the third.",
            (
                ("paid_validity", "for validity"),
                ("paid_adversarial", "for breaking the program"),
                ("paid_penalty", "penalty"),
            ),
        ),
        Panel(
            "what the coder is paid for",
            "Share of new and of replayed tests passed, of programs that load, and of programs that the sandbox "
            "denied something.",
            (
                ("passed_new", "new tests passed"),
                ("replays_failed", "replays failed"),
                ("executes", "loads"),
                ("denied", "denied something by the sandbox"),
            ),
        ),
        Panel(
            "tests",
            "Share of K asserts that are valid as written, and that their program fails.",
            (("valid_tests", "valid"), ("killing_tests", "killing")),
        ),
    ),
    "Diagnostics": (
        Panel(
            "effective alpha",
            "What group normalisation leaves of alpha, and how much of the tester's advantages validity makes: "
            "at 1, aiming pays nothing.",
            (("effective_alpha", "effective alpha"), ("validity_signal", "signal due to validity")),
        ),
        Panel(
            "groups that teach nothing",
            "All rewards of a group are equal, so no row has an advantage.",
            (("coder_zero_groups", "coder"), ("tester_zero_groups", "tester")),
        ),
        Panel(
            "tests that say little",
            "Trivial: no program that met the test fails it. Vacuous: it claims nothing of the program.",
            (
                ("trivial_tests", "trivial"),
                ("vacuous_tests", "vacuous"),
                ("duplicate_tests", "repeated"),
                ("test_diversity", "diversity of calls"),
            ),
        ),
        Panel(
            "collusion gap",
            "Reward minus hidden tests passed, on the same programs. If it rises, the seats please each other "
            "without getting better.",
            (("collusion_gap", "gap"), ("hidden_tests_passed", "hidden tests passed")),
        ),
        Panel(
            "regressions",
            "Of the held-out hidden tests that were once passed, those that fail now.",
            (("regression_rate", "regression rate"),),
            kind="evaluation",
            seat="coder",
        ),
        *_seat_panels("coder"),
        *_seat_panels("tester"),
        *_seat_panels("player"),
    ),
    "Mistake Book": (
        Panel("growth", "Tests in the book after each round.", (("book", "tests"),), is_share=False),
        Panel(
            "use",
            "How often a question had tests to replay, and how many of those still fail.",
            (("book_hit_rate", "questions with replays"), ("replays_failed", "replays failed")),
        ),
    ),
}
"""Panels under one heading."""


def charts_of(panel: Panel, runs: Sequence[RunRead]) -> Iterator[Chart]:
    """Of one run: its curves together. Of several: a chart for every curve, with a line for each run. Likewise of every
    further tester, where the panel is the tester's."""
    yield from _charts(panel, runs)
    further = dict.fromkeys(seat for run in runs for seat in run.seats() if seat.startswith("tester_"))
    for seat in further if panel.seat == "tester" else ():
        yield from _charts(replace(panel, seat=seat, title=panel.title.replace("tester", seat)), runs)


def _charts(panel: Panel, runs: Sequence[RunRead]) -> Iterator[Chart]:
    charts = [(panel.title, [(label, name, run) for name, label in panel.curves for run in runs])]
    if len(runs) > 1:
        charts = [(f"{panel.title}: {label}", [(run.shown, name, run) for run in runs]) for name, label in panel.curves]
    for title, lines in charts:
        series = [
            Series(label, tuple(run.points(panel.kind, panel.seat, name)), style)
            for style, (label, name, run) in enumerate(lines)
        ]
        if kept := tuple(line for line in series if line.points):
            yield Chart(title, kept, panel.is_share)
