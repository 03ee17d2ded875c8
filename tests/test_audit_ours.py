"""Our own grading is not fooled by the corpus of the audit, on any backend, and loses no honest program: minutes."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from codea1_env.audit.grader import command_grader
from codea1_env.audit.page import as_text
from codea1_env.audit.run import audit

pytestmark = pytest.mark.slow
OURS = Path(__file__).parents[1] / "benchmarks" / "graders" / "ours.py"


def check(words: list[str], *readable: Path) -> None:
    with command_grader(words, readable=[Path(sys.prefix), *readable], wait_s=60) as grader:
        result = audit(grader)
    assert result.whole
    assert result.clean, as_text(result)
    assert not result.reached
    assert not result.without_answer("ended")
    assert not result.without_answer("silent")


def test_on_the_local_backend() -> None:
    check([sys.executable, str(OURS), "local"])


def test_on_ray() -> None:
    pytest.importorskip("ray", reason="the Ray backend needs the extra `ray`")
    check([sys.executable, str(OURS), "ray"])


def test_in_docker(engine: Any) -> None:
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    words = ["env", f"DOCKER_HOST={address}", sys.executable, str(OURS), "docker"]
    check(words, Path(address.removeprefix("unix://")))
