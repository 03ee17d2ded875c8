"""Baseline: the Code LLM alone, rewarded by the share of each question's golden tests that it passes.

    python baselines/golden_tests.py                 the mini preset: two CPU cores, minutes
    python baselines/golden_tests.py --preset smoke  seconds, nothing is learnt
    python baselines/golden_tests.py --resume runs/golden-seed0

Every round, the coder answers each question N times; the arena grades each program on the question's golden tests; the
coder takes a GRPO step. No tester, no suites, no Mistake Book. Otherwise as agents/train_grpo.py: compare the two.
"""

import os
import time

from codea1_env.training.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="golden")

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.base_models import base_model
    from codea1_env.training.chat import questions_asked
    from codea1_env.training.engines import open_engine, prepare_process
    from codea1_env.training.problem_sets import load_problem_sets
    from codea1_env.training.results import as_record, as_table, compare, cost, plot_curves
    from codea1_env.training.rounds import golden_rewards
    from codea1_env.training.runs import CURVES, Run
    from codea1_env.training.seats import coder_trainer
    from codea1_env.training.warm_start import default_cache

    prepare_process()
    preset, seconds, clock = arguments.preset, {}, time.perf_counter

    # Build: problems, the base model.
    run = Run(arguments, seats=("coder",))
    problems = load_problem_sets(preset, arguments.seed, golden_tests=True)
    run.set_problems(problems.train, problems.held_out)
    start = clock()
    base = base_model(preset, default_cache(dict(os.environ)))
    asked = questions_asked(preset, problems.train, base, arguments.seed)
    seconds["warm_start"] = clock() - start

    with run, open_engine(run, base, problems.held_out) as engine:
        start = clock()
        before = engine.measure(base, None, rounds_done=0)
        seconds["evaluation_before"] = clock() - start

        # Loop: one stock GRPO trainer whose reward is the share of golden tests passed.
        start = clock()
        score = golden_rewards(engine.arena, engine.log_round, preset.evaluation.hidden_rounds)
        interrupted = engine.train({"coder": lambda seat, hooks: coder_trainer(seat, hooks, score, asked)})
        seconds["training"] = clock() - start
        engine.save_book()
        if interrupted:
            print(f"stopped; the coder is saved. To go on: --resume {run.directory}")
            return 130

        # Log and save.
        start = clock()
        after = engine.measure(run.directory / "coder/final", None, preset.rounds)
        seconds["evaluation_after"] = clock() - start
        rows, spent = compare(before, after), cost(seconds, run.records())
        run.write_summary(as_record(rows, spent))
        plot_curves(run.records(), run.directory / CURVES)

    print(as_table(rows), spent, f"everything is in {run.directory}", sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_status(main))
