"""Writes down what a run reports, and shows it: metrics, TensorBoard and a progress bar of rounds.

One process has it: the one that the user started. Does not promise an order of seats within a round.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from codea1_env.extras import extra
from codea1_env.training.run.held_out import MeasuredSeats
from codea1_env.training.run.results import CLAUSE
from codea1_env.training.run.run_dir import Run

with extra("train", "training needs"):
    from tqdm import tqdm

ROUND_LABELS = {"coder_reward": "R_C", "valid_tests": "valid", "killing_tests": "kill"}
SUSPECTS = {"vacuous_tests": "vacuous", "constant_programs": "constant", "hard_coded_programs": "hard-coded"}
"""Shown as soon as there are any: rewards may be earned without what they are for."""
UNREADABLE = "unreadable"
"""The share of suites without a test that can be read; `unreadable_REASON`, of those that it is for a reason."""
MOSTLY = 0.5
"""Share of a round's suites above which the run says that they cannot be read."""
EVALUATION_LABELS = {"coder": ("hidden_pass_rate", "hidden"), "tester": ("kill_rate", "held-out kill")}


class Bar(tqdm):  # type: ignore[type-arg]  # nothing is gone over
    """A bar without tqdm's thread, which would draw it where nothing has moved."""

    monitor_interval = 0


class RunJournal:
    """What a run says of itself."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._bar = Bar(total=run.preset.rounds, initial=run.rounds_done, desc="rounds")
        self._shown: dict[str, str] = {}
        self._warned = False

    def doing(self, what: str) -> None:
        """What goes on before the bar has anything to move for."""
        self._bar.set_description(f"rounds ({what})")

    def write(self, kind: str, rounds_done: int, values: Mapping[str, float], seat: str = "") -> None:
        """One line of the metrics. `kind`: round, seat or evaluation."""
        self._run.log(kind, rounds_done, values, seat)
        if kind == "round":
            self._shown |= {label: f"{values[name]:.2f}" for name, label in ROUND_LABELS.items() if name in values}
            for name, label in SUSPECTS.items():
                if values.get(name, 0.0) > 0:
                    self._shown[label] = f"{values[name]:.2f}"
                else:
                    self._shown.pop(label, None)
            if "book" in values:
                self._shown["book"] = f"{values['book']:.0f}"
            self._show_unreadable(rounds_done, values)
            self._bar.set_description("rounds", refresh=False)
            self._bar.set_postfix(self._shown, refresh=False)
            self._bar.update(rounds_done - self._bar.n)
        elif kind == "seat" and "tokens_per_second" in values:
            self._shown[f"{seat} tokens/s"] = f"{values['tokens_per_second']:.0f}"
            self._bar.set_postfix(self._shown)  # a round's seats come after it: the last one's would never be shown
        elif kind == "evaluation":
            name, label = EVALUATION_LABELS[seat.partition("_")[0]]
            if name in values:
                self._shown[label] = f"{values[name]:.2f}"
            clauses = [f"{each.removeprefix(CLAUSE)} {values[each]:.2f}" for each in values if each.startswith(CLAUSE)]
            if clauses:
                self.say(f"round {rounds_done}, {seat}, {label} {values[name]:.2f}: {', '.join(clauses)}")

    def _show_unreadable(self, rounds_done: int, values: Mapping[str, float]) -> None:
        """In the progress line while most suites cannot be read; the reasons in a line above, the first time."""
        self._shown.pop(UNREADABLE, None)
        share = values.get(UNREADABLE, 0.0)
        if not share > MOSTLY:
            return
        self._shown[UNREADABLE] = f"{share:.2f}"
        if not self._warned:
            self._warned = True
            start = f"{UNREADABLE}_"
            reasons = {name.removeprefix(start): part for name, part in values.items() if name.startswith(start)}
            commonest = sorted(reasons.items(), key=lambda item: -item[1])[:5]
            named = [f"{reason} ({part:.0%})" for reason, part in commonest]
            shows = f", and `codea1 view {self._run.directory}` shows them" if self._run.preset.keep_duels else ""
            self.say(
                f"round {rounds_done}: {share:.0%} of the tester's suites hold no readable test and earn nothing; "
                f"they hold {', '.join(named)}. docs/command-line.md explains this{shows}"
            )

    def write_measured(self, measured: MeasuredSeats, rounds_done: int) -> None:
        """Both seats' evaluation before or after a run; a resumed run has its base's already."""
        if rounds_done == 0 and self._run.rounds_done > 0:
            return
        lost = self._run.hidden_record().note(rounds_done, measured.coder)
        self.write("evaluation", rounds_done, measured.coder.summary() | lost, "coder")
        if measured.tester:
            self.write("evaluation", rounds_done, measured.tester.summary(), "tester")

    def say(self, message: str) -> None:
        """A line above the bar, on standard error like it."""
        self._bar.write(message, file=sys.stderr)

    def close(self) -> None:
        self._bar.close()
