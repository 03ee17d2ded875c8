"""What several files of tests need."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import SandboxError

# `make fuzz` tries many more examples than `make test`, which has thousands of tests and the same examples each time.
with contextlib.suppress(ImportError):  # the adapters' environments have no hypothesis
    from hypothesis import HealthCheck, settings

    # A machine that is busy is no fault of what is drawn.
    busy = [HealthCheck.too_slow]
    settings.register_profile("quick", settings.default, max_examples=50, derandomize=True, suppress_health_check=busy)
    settings.register_profile("fuzz", max_examples=2000)
    settings.load_profile("fuzz" if os.environ.get("CODEA1_FUZZ") else "quick")

# Hundreds of processes start here: what one of them has compiled, the others read, and so does the next run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is imported and collected stays: to look through it for garbage takes a quarter of the time of collecting.
gc.disable()


# A Ray cluster of its own for every test that names none: what runs on this machine is another test's.
os.environ.setdefault("RAY_ADDRESS", "local")

AXE = "4.10.3"
"""Release of the accessibility checker."""

# A shell starts background commands with interrupts ignored, and what is ignored is inherited: tests press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # the adapters' environments have no xdist
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: tests of time limits and of processes that end mostly wait."""
    return len(os.sched_getaffinity(0)) + 2


FEW_AND_LONG = {f"test_{name}.py" for name in (
    "adapter_trl_environments arena attacks audit bench changes companies cooperating doctor env eval examples gpu_run "
    "honest honest_backends independence judge_version kinds long_training own_classes policy_trl sandbox score "
    "scripts seat_rewards sharded suite_sizes time_limits"
).split()}  # fmt: skip
"""Files of few tests that take longer than most files of many."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that nothing waits for it alone at the end: tests that are marked, then files
    that train or are known to be long, then files with many tests."""
    tests_of = Counter(item.path for item in items)

    def rank(item: pytest.Item) -> tuple[bool, bool, int]:
        is_long = item.path.name.startswith("test_training") or item.path.name in FEW_AND_LONG
        return item.get_closest_marker("longest") is None, not is_long, -tests_of[item.path]

    items.sort(key=rank)


class TrainingTests(pytest.Module):
    """A file that is skipped, saying why, where training is not installed."""

    def collect(self) -> Any:
        pytest.importorskip("trl", reason="the extra `train` is not installed")
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    trains = ("test_training", "test_policy_trl", "test_own_algorithm", "test_long_training")
    return TrainingTests.from_parent(parent, path=module_path) if module_path.name.startswith(trains) else None


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """What one test writes and imports, the next one in this process does not find under the same name."""
    path, imported = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - imported:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(tempfile.gettempdir() + os.sep):
            del sys.modules[name]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Any]:
    """A local sandbox for all who need no other: no job sees another."""
    from codea1_env.sandbox import LocalSandbox

    with LocalSandbox() as shared:
        yield shared


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """A client of a running Docker engine with an image of this very code; skips, saying why, where there is none."""
    from codea1_env.sandbox.docker.engine import connect
    from codea1_env.sandbox.docker.image import BASE_IMAGE, build_image

    try:
        client = connect()
    except (ImportError, SandboxError) as error:
        pytest.skip(str(error))
    if not client.images(name=BASE_IMAGE):
        client.close()
        pytest.skip(f"the image {BASE_IMAGE} must be at hand; make it: codea1 sandbox build-image")
    build_image(packages=(), say=lambda message: None)
    yield client
    client.close()


@pytest.fixture(scope="session")
def bases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where base models are kept: for all processes of a test run and, where pytest keeps a cache, for later ones."""
    if hasattr(request.config, "cache"):
        return Path(request.config.cache.mkdir("bases"))
    return tmp_path_factory.mktemp("bases")


@pytest.fixture(scope="session")
def base(bases: Path) -> Path:
    """A tiny base model that knows enough for rewards to differ; built once for all tests of training."""
    from training_runs import TINY

    from codea1_env.training.models.warm_start import base_model

    with open(bases / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second takes what the first one built
        return base_model(TINY, bases)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
    program = os.environ.get("CODEA1_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium, or name one in CODEA1_CHROMIUM")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe() -> Callable[[Any], None]:
    """Fails where the accessibility checker, fetched once from the npm registry, finds something serious on a page as
    it is now."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "codea1-env"
    archive = cache / f"axe-core-{AXE}.tgz"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second takes what the first one fetched
        if not archive.exists():
            if shutil.which("npm") is None:
                pytest.skip("axe-core is fetched by npm, and there is none")
            fetched = subprocess.run(
                ["npm", "pack", "--silent", f"axe-core@{AXE}"], cwd=cache, capture_output=True, text=True
            )
            if fetched.returncode:
                pytest.skip(f"npm cannot fetch axe-core: {fetched.stderr.strip()[:200]}")
    with tarfile.open(archive) as files:
        source = files.extractfile("package/axe.min.js")
        assert source is not None
        text = source.read().decode()

    def require(page: Any) -> None:
        page.evaluate(text)
        found = page.evaluate("axe.run()")
        serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        assert not serious, json.dumps([(each["id"], [node["html"] for node in each["nodes"][:3]]) for each in serious])

    return require
