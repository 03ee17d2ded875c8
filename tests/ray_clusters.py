"""A Ray cluster of a test's own. Not a test module."""

from __future__ import annotations

import logging
import os

import ray

TRIES = 3
"""Ray gives up 30 seconds after it has begun to start, which a busy machine may need."""


def start_cluster(num_cpus: int) -> None:
    """`ray.init` of a cluster that no other test process has: without `address` it would join one of theirs."""
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")  # or it starts as many processes, used or not
    for attempt in range(1, TRIES + 1):
        try:
            own = {"address": "local", "num_cpus": num_cpus, "include_dashboard": False}
            ray.init(**own, log_to_driver=False, logging_level=logging.ERROR)
            return
        except Exception as error:
            if attempt == TRIES or "timed out during startup" not in str(error):
                raise
            ray.shutdown()
