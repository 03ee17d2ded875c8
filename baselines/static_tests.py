"""Baseline: static supervision. A tester writes suites once; they become the golden tests of a fresh Code LLM.

    python baselines/static_tests.py --tester runs/mini-seed0   that run's trained tester writes; else the base
    python baselines/static_tests.py --preset smoke             seconds, nothing is learnt
    python baselines/static_tests.py --resume runs/static-seed0

Once, for every problem, the tester writes M suites against programs of the base coder; the tests that count become the
problem's golden tests, with the reference's values. Then as baselines/golden_tests.py: compare the two.
"""

import os
import time

from codea1_env.training.arguments import exit_status, parse_arguments


def main() -> int:
    arguments = parse_arguments(__doc__, recipe="static", takes_tester=True)

    # Only now: these imports load torch, and a wrong argument must not wait for them.
    from codea1_env.training.base_models import base_model
    from codea1_env.training.chat import fitting, questions_asked
    from codea1_env.training.engines import open_engine, prepare_process
    from codea1_env.training.problem_sets import load_problem_sets
    from codea1_env.training.results import as_record, as_table, compare, cost, plot_curves
    from codea1_env.training.rounds import golden_rewards
    from codea1_env.training.runs import CURVES, Run
    from codea1_env.training.seats import coder_trainer
    from codea1_env.training.warm_start import default_cache
    from codea1_env.training.written_tests import written_golden_tests

    prepare_process()
    preset, seconds, clock = arguments.preset, {}, time.perf_counter

    # Build: problems, the base model, the tester.
    run = Run(arguments, seats=("coder",))
    problems = load_problem_sets(preset, arguments.seed)
    run.set_problems(problems.train, problems.held_out)
    start = clock()
    base = base_model(preset, default_cache(dict(os.environ)))
    able = fitting(preset, problems.train, base)
    asked = questions_asked(preset, able, base, arguments.seed)
    seconds["warm_start"] = clock() - start
    tester = arguments.tester or base

    with run, open_engine(run, base, problems.held_out) as engine:
        start = clock()
        before = engine.measure(base, None, rounds_done=0)
        seconds["evaluation_before"] = clock() - start

        # Loop: one stock GRPO trainer whose reward is the share of the tester's tests passed.
        start = clock()
        arena, score = engine.arena, golden_rewards(engine.arena, engine.log_round, preset.evaluation.hidden_rounds)

        def coder(seat, hooks):
            written = {p.problem_id: p for p in written_golden_tests(seat, arena, tester, able)}
            return coder_trainer(seat, hooks, score, [written[problem.problem_id] for problem in asked])

        interrupted = engine.train({"coder": coder})
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
