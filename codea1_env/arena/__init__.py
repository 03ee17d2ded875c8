"""Batches of duels and what becomes of them: the one place that scores, its inputs and outputs, diagnostics."""
