"""The text game as environments: PettingZoo's two-seat forms, Gymnasium's one-seat ones, and their conformance.

An episode is a state machine of its own (`episode.py`) that all of them share. Does not score: see `codea1_env.arena`.
"""
