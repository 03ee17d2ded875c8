"""Relational tests on the trusted side: is the claim true of a value, and does it say anything?"""
