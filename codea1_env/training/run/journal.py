"""Writes down what a run reports, and shows it: metrics, TensorBoard and a progress bar of rounds.

One process has it: the one that the user started. Does not promise an order of seats within a round.
"""

from __future__ import annotations

from collections.abc import Mapping

from codea1_env.extras import extra
from codea1_env.training.run.results import Measured
from codea1_env.training.run.run_dir import Run

with extra("train", "training needs"):
    from tqdm import tqdm

ROUND_LABELS = {"coder_reward": "R_C", "valid_tests": "valid", "killing_tests": "kill"}
EVALUATION_LABELS = {"coder": ("hidden_pass_rate", "hidden"), "tester": ("kill_rate", "held-out kill")}


class Journal:
    """What a run says of itself."""

    def __init__(self, run: Run, *, progress: bool) -> None:
        self._run = run
        self._bar = tqdm(total=run.preset.rounds, initial=run.rounds_done, desc="rounds", disable=not progress)
        self._shown: dict[str, str] = {}

    def write(self, kind: str, rounds_done: int, values: Mapping[str, float], seat: str = "") -> None:
        """One line of the metrics. `kind`: round, seat or evaluation."""
        self._run.log(kind, rounds_done, values, seat)
        if kind == "round":
            self._shown |= {label: f"{values[name]:.2f}" for name, label in ROUND_LABELS.items() if name in values}
            if "book" in values:
                self._shown["book"] = f"{values['book']:.0f}"
            self._bar.set_postfix(self._shown, refresh=False)
            self._bar.update(rounds_done - self._bar.n)
        elif kind == "seat" and "tokens_per_second" in values:
            self._shown[f"{seat} tokens/s"] = f"{values['tokens_per_second']:.0f}"
        elif kind == "evaluation":
            name, label = EVALUATION_LABELS[seat]
            if name in values:
                self._shown[label] = f"{values[name]:.2f}"

    def write_measured(self, measured: Measured, rounds_done: int) -> None:
        """Both seats' evaluation before or after a run; a resumed run has its base's already."""
        if rounds_done == 0 and self._run.rounds_done > 0:
            return
        lost = self._run.hidden_record().note(rounds_done, measured.coder)
        self.write("evaluation", rounds_done, measured.coder.summary() | lost, "coder")
        if measured.tester:
            self.write("evaluation", rounds_done, measured.tester.summary(), "tester")

    def say(self, message: str) -> None:
        """A line above the bar."""
        self._bar.write(message)

    def close(self) -> None:
        self._bar.close()
