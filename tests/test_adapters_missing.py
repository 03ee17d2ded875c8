"""An adapter whose library is not there says what to install."""

import re
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("openenv", "openenv", "openenv"),
        ("openenv_server", "openenv", "openenv"),
        ("verifiers", "verifiers", "verifiers"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(module: str, library: str, extra: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; import codea1_env.adapters.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert f"needs the extra `{extra}`: pip install '.[{extra}]'" in said
    assert re.search(rf"\(got: .*{library}", said)
