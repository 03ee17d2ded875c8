"""A scored round as numbers for the log: rewards, how tests fared, the replays, the book.

Pure. Does not promise that a share means much in a small round.
"""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.arena.diagnostics import mean, shares_of
from codea1_env.arena.match import MatchScore
from codea1_env.rewards.duel import Status, Verdict
from codea1_env.rewards.terms import SuiteTerms


def round_metrics(scores: Sequence[MatchScore], booked: int, selected: Sequence[float | None]) -> dict[str, float]:
    """What the log shows. `booked`: tests in the Mistake Book. `selected`: rewards of the suites learnt from."""
    tried = [(code, row) for score in scores for code, row in zip(score.codes, score.suites, strict=True)]
    # What is left out has no score though infrastructure did not fail: its prompt was too long.
    codes = [code for code, row in tried if row or code.reward is not None or code.executes is None]
    suites = [suite for score in scores for row in score.suites for suite in row]
    terms = [suite.terms for suite in suites if suite.terms is not None]
    metrics = {
        "coder_reward": mean([code.reward for code in codes]),
        "executes": mean([None if code.executes is None else float(code.executes) for code in codes]),
        "tester_reward": mean([suite.reward for suite in suites]),
        "tester_reward_selected": mean(selected),
        "passed_new": mean([term.p_new for term in terms]),
        "validity": mean([term.validity for term in terms]),
        "unscored": float(sum(code.reward is None for code in codes)),
        "not_attacked": float(len(tried) - len(codes)),
        "book": float(booked),
    }
    known = [code for code in codes if code.executes is not None]
    metrics |= shares_of("refused", [["_".join(code.refused.split())] * bool(code.refused) for code in known])
    metrics |= shares_of("denied", [[note.split()[0] for note in code.denied] for code in known])
    metrics |= shares_of("unreadable", [suite.duel.unreadable for suite in suites if suite.terms is not None])
    return metrics | _test_shares(scores) | _replay_shares(terms) | _oracle_shares(scores)


def _test_shares(scores: Sequence[MatchScore]) -> dict[str, float]:
    """Shares of the first K tests of every suite, missing ones counting as tests that are not valid."""
    valid = kills = total = 0
    for score in scores:
        for row in score.suites:
            for suite in row:
                if suite.terms is None:
                    continue
                total += suite.terms.suite_size
                valid += sum(test.status is Status.KEPT for test in suite.duel.tests)
                kills += sum(test.verdict not in (None, Verdict.PASS) for test in suite.duel.tests)
    if not total:
        return {"valid_tests": float("nan"), "killing_tests": float("nan")}
    return {"valid_tests": valid / total, "killing_tests": kills / total}


def _replay_shares(terms: Sequence[SuiteTerms]) -> dict[str, float]:
    replayed = [term.f_hist for term in terms if term.f_hist is not None]
    return {
        "replayed": len(replayed) / len(terms) if terms else float("nan"),
        "replays_failed": mean(replayed),
    }


def _oracle_shares(scores: Sequence[MatchScore]) -> dict[str, float]:
    """Wrong and missing values of an oracle that is not the reference, where they can be measured."""
    errors = [score.oracle_error for score in scores if score.oracle_error is not None]
    return {"oracle_error": mean([error.share for error in errors if error.asked])} if errors else {}
