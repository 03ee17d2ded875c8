"""The paper's claims in a matrix game without language models: recorded programs against recorded tests, in seconds.

    python experiments/matrix_study.py --pools pools.jsonl
    python experiments/matrix_study.py    # the bundled pools: small, for a look

docs/results.md says what came out and how recorded pools are made. Arms and figures were written down before the first
run on those. Needs matplotlib for the picture (extra `train`); everything else is numpy.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the matrices are small, and seeds run side by side

import argparse
import json
import multiprocessing
import sys
import time
from pathlib import Path

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("train"):
    import numpy as np
    from matrix_learning import (
        CODER_RATE,
        TESTER_RATE,
        Arm,
        Game,
        Policies,
        pay,
        softmax,
        suite_draws,
    )
    from matrix_pools import Floats, Ints, Questions, Source, questions_of, source_of, written_outcomes
    from matrix_tables import draw, tables

    from codea1_env.discrete import bundled_pools, read_pools

ROUNDS, EVERY = 200, 20
"""Rounds of a run, and how many lie between two evaluations."""
HELD_OUT = 1 / 3
"""Share of the questions that nobody learns on."""
SAMPLED = 8
"""Suites drawn against every program where a tester is measured."""

ARMS = (
    Arm("golden tests", coder_paid_by="golden", tester_learns=False, book=False),
    Arm("frozen tester", tester_learns=False),
    Arm("co-trained"),
    Arm("co-trained, black box", white_box=False),
    Arm("finished tester", tester_learns=False, starts_from="co-trained"),
    Arm("no book", book=False),
    Arm("one learner", book=False, paid_for_both=True),
    Arm("no reference", book=False, reference=False),
    Arm("one learner, no reference", book=False, reference=False, paid_for_both=True),
)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=Path, help="by `codea1 pools from-recorded` (default: the bundled pools)")
    parser.add_argument("--seeds", type=int, default=10, help="runs of every arm (default: 10)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of a run (default: {ROUNDS})")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, default=Path("runs/matrix-study"), help="where results.json, table.md "
                        "and the picture go (default: runs/matrix-study)")  # fmt: skip
    options = parser.parse_args()
    for name, least in (("seeds", 2), ("rounds", 2 * EVERY), ("workers", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}, got {getattr(options, name)}")
    options.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    if options.pools is None:
        print("no --pools: on the bundled pools, which are small and were made by changing programs and tests",
              file=sys.stderr)  # fmt: skip
    pools = bundled_pools() if options.pools is None else read_pools(options.pools)
    source = source_of(pools, lambda kept: written_outcomes(kept, options.output / "written.npz"))
    prepared = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(options.workers) as workers:
        found = []
        for seed, runs in enumerate(
            workers.imap(_one_seed, [(source, seed, options.rounds) for seed in range(options.seeds)])
        ):
            found.append(runs)
            print(f"seed {seed}: {time.monotonic() - prepared:.0f} s", file=sys.stderr, flush=True)
    record = {
        "pools": str(options.pools or "bundled"),
        "questions": len(source.pools),
        "programs": sum(len(pool.programs) for pool in source.pools),
        "tests": sum(len(pool.tests) for pool in source.pools),
        "rounds": options.rounds,
        "rates": [CODER_RATE, TESTER_RATE],
        "seconds": {"programs on tests as written": prepared - began, "runs": time.monotonic() - prepared},
        "seeds": found,
    }
    (options.output / "results.json").write_text(json.dumps(record) + "\n")
    text = tables(record)
    (options.output / "table.md").write_text(text)
    print(text)
    draw(record, options.output / "matrix-ordering.png")


def _one_seed(work: tuple[Source, int, int]) -> dict[str, dict[str, float]]:
    """What every arm came to with one seed."""
    source, seed, rounds = work
    questions = questions_of(source, seed)
    order = np.random.default_rng([seed, 0]).permutation(len(questions.ids))
    cut = round(len(order) * HELD_OUT)
    held_out, train = np.sort(order[:cut]), np.sort(order[cut:])
    final = {"base": Policies.untrained(questions)}
    runs = {"base": evaluation(questions, final["base"], train, held_out, seed)}
    for arm in ARMS:
        policies = Policies.untrained(questions)
        if arm.starts_from:
            begun = final[arm.starts_from]
            policies = Policies(policies.coder, begun.tester.copy(), begun.attack.copy())
        runs[arm.name] = _train(questions, Game(questions, arm, train, seed, policies), held_out, seed, rounds)
        final[arm.name] = policies
    return runs


def _train(questions: Questions, game: Game, held_out: Ints, seed: int, rounds: int) -> dict[str, float]:
    train, policies = game.train, game.policies
    passed = []
    for number in range(rounds + 1):
        if number % EVERY == 0:
            passed.append(_call_rates(questions, policies)[train])
        if number < rounds:
            game.round()
    numbers = evaluation(questions, policies, train, held_out, seed)
    earlier, now = np.array(passed[:-1]).max(0), passed[-1]
    once = (earlier >= 0.5) & questions.hidden_calls[train]
    numbers["regressions"] = float((once & (now < 0.5)).sum() / max(once.sum(), 1))
    numbers["R_C"] = float(np.mean(game.coder_rewards[-EVERY:]))
    numbers["collusion gap"] = numbers["R_C"] - numbers["hidden, trained on"]
    numbers["book"] = float(len(game.book))
    for name, groups in game.moved.items():
        numbers[f"moved by f_hist, {name}"] = float(np.mean(groups)) if groups else 0.0
    return numbers


def _mixes(questions: Questions, policies: Policies) -> Floats:
    """Probabilities of programs, (Q, P)."""
    return softmax(policies.program_logits(questions, np.arange(len(questions.ids))))


def _hidden(questions: Questions, policies: Policies, chosen: Ints) -> float:
    """The expected share of hidden calls passed, mean over questions; exact."""
    return float((_mixes(questions, policies) * questions.pass_rates).sum(1)[chosen].mean())


def _call_rates(questions: Questions, policies: Policies) -> Floats:
    """The probability that a hidden call is passed, (Q, H)."""
    return np.einsum("qp,qph->qh", _mixes(questions, policies), questions.hidden)


def evaluation(questions: Questions, policies: Policies, train: Ints, held_out: Ints, seed: int) -> dict[str, float]:
    right = (questions.pass_rates == 1) & questions.executes
    numbers = {
        "hidden, held out": _hidden(questions, policies, held_out),
        "hidden, trained on": _hidden(questions, policies, train),
        "right, held out": float((_mixes(questions, policies) * right).sum(1)[held_out].mean()),
    }
    # The tester against all wrong programs that load, every one as likely as any other of its question.
    valid, kills = [], []
    for place in held_out:
        targets = np.flatnonzero(questions.executes[place] & questions.fails[place].any(1))
        if len(targets):
            paid = _against(questions, policies, int(place), targets, seed)
            valid.append(paid.valid.mean())
            kills.append(paid.kills.mean())
    return numbers | {"valid": float(np.mean(valid)), "kills": float(np.mean(kills))}


def _against(questions: Questions, policies: Policies, question: int, targets: Ints, seed: int):
    """What suites of a tester come to against programs of one question, without a book."""
    chosen, programs = np.array([question]), targets[None]
    generator = np.random.default_rng([seed, 2, question])
    suites = suite_draws(policies.test_logits(questions, chosen, programs), SAMPLED, generator)
    return pay(questions, Arm("measured"), chosen, programs, suites, [[]])


if __name__ == "__main__":
    main()
