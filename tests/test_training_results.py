"""Where the time of a round goes, as a finished run shows it."""

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")


from codea1_env.training.run.results import cost


def seat(name: str, number: int, generating: float, waiting: float, learning: float) -> dict:
    parts = {"seconds_generating": generating, "seconds_waiting": waiting, "seconds_learning": learning}
    return {"kind": "seat", "seat": name, "round": number} | parts


def scored(number: int, seconds: float) -> dict:
    parts = {"seconds_parsing": 0.05, "seconds_judging": 0.12, "seconds_rewarding": 0.03}
    return {"kind": "round", "seat": "", "round": number, "seconds_scoring": seconds} | parts


def test_shares_are_of_the_longest_seats_median_round() -> None:
    """By hand: the coder's median round is 0.5 + 1.2 + 0.3 = 2 s, the tester's 0.8 + 0.6 + 0.4 = 1.8 s."""
    records = [
        *(seat("coder", n, generating=0.5, waiting=w, learning=0.3) for n, w in ((1, 1.2), (2, 1.1), (3, 9.0))),
        *(seat("tester", n, generating=0.8, waiting=0.6, learning=0.4) for n in (1, 2, 3)),
        *(scored(n, s) for n, s in ((1, 0.2), (2, 0.1), (3, 0.3))),
    ]
    spent = cost({"training": 10.0}, records)
    shares = {"coder waiting": 0.6, "tester waiting": 1 / 3, "environment": 0.1}
    assert spent.shares() == pytest.approx(shares)
    shown = str(spent)
    assert "a round of the coder: 2.00 s = generating 0.50 + waiting 1.20 + learning 0.30" in shown
    assert "the environment's share of a round: 10.0% (0.200 s: parsing 0.050, judging 0.120, rewarding 0.030)" in shown


def test_training_is_of_all_starts_of_a_run() -> None:
    """Two rounds were played before the last start, of 2 and 1.8 s for the slower seat; the third is timed."""
    records = [
        *(seat("coder", n, generating=0.5, waiting=w, learning=0.3) for n, w in ((1, 1.2), (2, 0.1), (3, 9.0))),
        *(seat("tester", n, generating=0.8, waiting=0.6, learning=0.4) for n in (1, 2, 3)),
        {"kind": "evaluation", "seat": "coder", "round": 0},
    ]
    assert cost({"training": 10.0}, records, 2).seconds == {"training": pytest.approx(13.8)}
    assert cost({"training": 10.0}, records).seconds == {"training": 10.0}


def test_a_run_without_rounds_has_no_split() -> None:
    spent = cost({"evaluation": 1.0}, [{"kind": "evaluation", "seat": "coder", "round": 0}])
    assert spent.shares() == {}
    assert "round" not in str(spent)
