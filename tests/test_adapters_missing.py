"""An adapter or a script whose library is not there says what to install."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("openenv", "openenv", "openenv"),
        ("openenv_server", "openenv", "openenv"),
        ("verifiers", "verifiers", "verifiers"),
        ("skyrl", "skyrl_gym", "skyrl"),
        ("nemo_gym", "nemo_gym", "nemo_gym"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(module: str, library: str, extra: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; import codea1_env.adapters.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert f"needs the extra `{extra}`: pip install '.[{extra}]'" in said
    assert re.search(rf"\(got: .*{library}", said)


ROOT = Path(__file__).parents[1]
SCRIPTS = (
    ("examples/trl_rewards.py", "trl", "train"),
    ("examples/trl_environment.py", "torch", "train"),
    ("examples/sb3_discrete_coder.py", "supersuit", "sb3"),
    ("examples/torchrl_discrete.py", "torch", "torchrl"),
    ("examples/rllib_discrete.py", "ray", "rllib"),
    ("examples/verifiers_duel.py", "verifiers", "verifiers"),
    ("examples/skyrl_repair.py", "skyrl_gym", "skyrl"),
    ("examples/play_checkpoint.py", "torch", "train"),
    ("codea1_env/adapters/openenv_server.py", "openenv", "openenv"),
    ("experiments/study.py", "scipy", "solve"),
    ("experiments/matrix_study.py", "torch", "train"),
    ("benchmarks/soak.py", "psutil", "dev"),
    ("agents/train_grpo.py", "torch", "train"),
    ("baselines/golden_tests.py", "torch", "train"),
)


@pytest.mark.parametrize(("script", "library", "extra"), SCRIPTS)
def test_a_script_without_its_library_says_in_one_line_what_to_install(script: str, library: str, extra: str) -> None:
    arguments = ["--list-arms"] if script == "experiments/study.py" else ["--preset", "smoke"]
    code = (
        "import importlib.util, runpy, sys\n"
        f"sys.modules[{library!r}] = None\n"
        "find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *rest: None if name == {library!r} else find(name, *rest)\n"
        f"sys.argv = [{script!r}, *{arguments!r}]\n"
        f"sys.path.insert(0, {str(ROOT / script)!r}.rpartition('/')[0])\n"
        f"runpy.run_path({str(ROOT / script)!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    said = done.stderr.strip().splitlines()
    assert len(said) == 1, done.stderr
    assert re.search(rf"the extra `[\w,]*\b{extra}\b", said[0])
