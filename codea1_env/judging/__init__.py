"""Values to verdicts: what a test states, what the right value is, and whether a program returned it.

Programs are only ever run by a sandbox (`codea1_env.sandbox`); nothing here trusts what they return.
"""
