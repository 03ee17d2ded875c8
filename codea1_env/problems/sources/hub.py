"""The hub of models and data sets, which may be out of reach.

Its clients ask again for half a minute, for each file and even for one that is in their cache. Whether it answers at
all is asked once instead. Does not know what is there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_WAIT_S = 10.0
_ONE_AT_A_TIME = threading.RLock()
"""What a client goes by is of the whole process: two that overlap would leave it as the first one had set it."""


@contextmanager
def hub_or_cache() -> Iterator[None]:
    """Clients of the hub ask it, or look into their cache at once where it does not answer. Needs an extra that brings
    `huggingface_hub`."""
    from huggingface_hub import constants, get_session

    with _ONE_AT_A_TIME:
        was_offline = constants.HF_HUB_OFFLINE
        try:
            get_session().head(constants.ENDPOINT, timeout=_WAIT_S)
        except Exception:  # of whatever client of HTTP this version has; HF_HUB_OFFLINE raises, too
            constants.HF_HUB_OFFLINE = True
        try:
            yield
        finally:
            constants.HF_HUB_OFFLINE = was_offline
