"""The tester's seat without learning: a fixed model attacks every round, so that only the coder changes.

To engine and exchange it is a seat like any other: it meets the coder once a round and leaves checkpoints, which say
how far it got. What it samples depends on the run's seed and the round alone, so a resumed run goes on as it would
have. Does not promise to generate with vLLM.
"""

from __future__ import annotations

import json
from pathlib import Path

from codea1_env.players.player import TesterRequest
from codea1_env.training.config.options import Options
from codea1_env.training.models.sampling import load_model
from codea1_env.training.round.exchange import Exchange
from codea1_env.training.round.rounds import in_places, put_to_tester
from codea1_env.training.round.rules import RoundRules
from codea1_env.training.run.callbacks import RoundClock, SeatHooks, SeatRun, finish_checkpoint
from codea1_env.training.run.checkpoints import rounds_of
from codea1_env.training.run.resuming import ROUNDS


class FrozenTester:
    """Attacks for a whole run; has what `seats.train` asks of a trainer."""

    def __init__(self, run: SeatRun, hooks: SeatHooks, exchange: Exchange, tester: Path) -> None:
        """`tester`: the model that writes the suites, in Hugging Face format."""
        self._loaded = load_model(tester, run.preset, run.device)
        self.model, self.processing_class = self._loaded.model, self._loaded.tokenizer
        self._run = run
        self._hooks = hooks
        self._exchange = exchange

    def train(self, resume_from_checkpoint: str | None = None) -> None:
        """All rounds, or those after the checkpoint."""
        rounds, save_rounds = self._run.preset.rounds, self._run.preset.save_rounds
        first = rounds_of(Path(resume_from_checkpoint)) if resume_from_checkpoint else 0
        for round_index in range(first, rounds):
            self._attack(round_index)
            done, is_last = round_index + 1, self._hooks.is_last(round_index)
            if is_last or done == rounds or done % save_rounds == 0:
                self._save(done)
            if is_last:
                return

    def _attack(self, round_index: int) -> None:
        clock = RoundClock()
        clock.begin()
        attacks = self._exchange.take_attacks(round_index)
        clock.start()
        preset = self._run.preset
        rules = RoundRules(Options(preset.options.selection), hidden_rounds=preset.evaluation.hidden_rounds)
        places = put_to_tester(attacks, preset.round.programs, preset.round.attacked, rules)
        requests = [TesterRequest(attacks[place].problem, attacks[place].program) for place in places]
        sampler = self._loaded.as_trained(preset, "tester", self._run.stream(round_index))
        suites = sampler.suites(requests, preset.round.suites, preset.round.tester_prompt_tokens)
        clock.hand_over()
        self._exchange.submit_suites(round_index, in_places(suites, places, len(attacks)), rules)
        clock.resume()
        self._hooks.log(round_index, clock.seconds())

    def _save(self, done: int) -> None:
        """A checkpoint of nothing but the round: there is no other state. It is a file, since one without any is not
        whole, and the run would begin again."""
        step = done * self._run.preset.round.updates
        checkpoint = self._run.output / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        (checkpoint / ROUNDS).write_text(json.dumps({"rounds": done}), encoding="utf-8")
        finish_checkpoint(self._run, self._hooks, step)
