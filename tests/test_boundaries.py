"""What may import what, what an import costs nobody, and what the wheel holds."""

import ast
import functools
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "codea1_env"

# One way only, from the ground up: a package may import from those before it. Modules in the root import from the root.
LAYERS = [
    "sandbox",
    "reading",
    "problems",
    "rewards",
    "judging",
    "mistake_book",
    "arena",
    "language_models",
    "players",
    "records",
    "evaluation",
    "envs",
    "discrete",
    "configuration",
    "training",
    "adapters",
    "viewer",
    "report",
    "bench",
    "audit",
    "testing",
    "serving",
    "cli",
]
# The same inside `training`; "." are the modules in its own folder, but for `recipe`, which has all of it.
TRAINING_LAYERS = [".", "models", "run", "policies", "round", "loop", "recipe"]
HEAVY = {
    "scipy",
    "torch",
    "trl",
    "ray",
    "vllm",
    "docker",
    "matplotlib",
    "transformers",
    "datasets",
    "accelerate",
    "tokenizers",
}


# One class a name. These are pairs: the seats of one method, and the text game beside the game of pools.
PAIRS = {
    "CodeA1": {"rewards/coder_rewards.py", "rewards/tester_rewards.py"},
    "Skill": {"rewards/coder_rewards.py", "rewards/tester_rewards.py"},
    "parallel_env": {"discrete/environment.py", "envs/environment.py"},
    "raw_env": {"discrete/environment.py", "envs/environment.py"},
}


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path.parent.name != "inside" and path.parent != ROOT]


def top(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def imported(path: Path) -> set[str]:
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def packages(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def test_every_package_has_its_layer_and_no_layer_is_empty() -> None:
    assert packages(PACKAGE) == set(LAYERS)
    assert packages(PACKAGE / "training") == set(TRAINING_LAYERS) - {".", "loop", "recipe"}


def test_imports_run_one_way() -> None:
    backwards = []
    for path in modules():
        if path.parent == PACKAGE and path.name in ("__init__.py", "__main__.py"):  # the doors of the package
            continue
        parts = path.relative_to(PACKAGE).parts
        own = LAYERS.index(parts[0]) if len(parts) > 1 else -1
        for name in imported(path):
            root, _, rest = name.partition(".")
            other = rest.split(".")
            if root != "codea1_env" or other[0] not in LAYERS:
                continue
            is_inside = parts[0] == other[0] == "training"
            if LAYERS.index(other[0]) > own or (is_inside and place(other[1:]) > place(parts[1:])):
                backwards.append(f"{path} imports {name}")
    assert backwards == []


def place(parts: Sequence[str]) -> int:
    """Of a module inside `training`, named without it."""
    name = parts[0].removesuffix(".py") if parts else "."
    return TRAINING_LAYERS.index(name if name in TRAINING_LAYERS else ".")


DECIDES_WHAT_RUNS = (
    "judging/schedule", "judging/execution",
)  # fmt: skip
"""And whatever they need, the sandbox included."""
KNOWS_WHAT_IS_RIGHT = {
    "judging/equality", "judging/relations/truth", "judging/relations/status", "judging/relations/neighbours",
    "judging/oracle", "judging/expected_values", "judging/validation", "judging/judge", "judging/checking",
    "arena/bouts", "arena/arena", "mistake_book/book", "rewards/code_a1", "rewards/tester_rewards", "rewards/duel",
    "rewards/coder_rewards", "rewards/interfaces",
}  # fmt: skip


def test_nothing_that_decides_what_runs_imports_what_knows_or_compares_right_values() -> None:
    waiting = {PACKAGE / f"{name}.py" for name in DECIDES_WHAT_RUNS}
    waiting |= set((PACKAGE / "sandbox").rglob("*.py"))
    reached: set[Path] = set()
    while waiting:
        path = waiting.pop()
        reached.add(path)
        parts = [name.split(".")[1:] for name in imported(path) if name.startswith("codea1_env.")]
        files = {PACKAGE.joinpath(*each).with_suffix(".py") for each in parts}
        files |= {PACKAGE.joinpath(*each) / "__init__.py" for each in parts}
        waiting |= {file for file in files if file.exists()} - reached
    names = {str(path.relative_to(PACKAGE).with_suffix("")) for path in reached}
    assert "reading/parsing" in names  # it follows imports
    assert names.isdisjoint(KNOWS_WHAT_IS_RIGHT)
    assert all((PACKAGE / f"{name}.py").exists() for name in KNOWS_WHAT_IS_RIGHT)


def test_only_training_and_language_models_import_what_is_heavy_and_each_backend_its_own_library() -> None:
    own = {
        PACKAGE / "sandbox" / "places.py": {"ray"},
        PACKAGE / "problems" / "sources" / "rows.py": {"datasets"},
        PACKAGE / "discrete" / "solve.py": {"scipy"},
        PACKAGE / "players" / "hugging_face.py": {"torch", "transformers"},
        PACKAGE / "adapters" / "rllib.py": {"ray"},
        PACKAGE / "adapters" / "openrlhf.py": {"torch"},
        PACKAGE / "bench" / "estimates.py": {"scipy"},
        PACKAGE / "report" / "picture.py": {"matplotlib"},
        PACKAGE / "bench" / "table.py": {"matplotlib"},
        PACKAGE / "configuration" / "grpo_section.py": {"trl"},
        PACKAGE / "players" / "vllm_offline.py": {"vllm"},
    }
    for path in modules():
        if top(path) not in ("training", "language_models"):
            assert {name.split(".")[0] for name in imported(path)} & HEAVY == own.get(path, set()), path
            assert ('import_module("docker")' in path.read_text()) == (
                path == PACKAGE / "sandbox" / "docker" / "engine.py"
            )


def test_importing_the_package_and_using_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, codea1_env; [getattr(codea1_env, name) for name in codea1_env.__all__]; import codea1_env.cli;"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_stays_there() -> None:
    code = (
        "import codea1_env\n"
        "for _ in range(2): found = {n: getattr(codea1_env, n) for n in codea1_env.__all__}\n"
        "import types; print([n for n, v in found.items() if isinstance(v, types.ModuleType)], len(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    names, count = done.stdout.strip().rsplit(" ", 1)
    assert names == "[]"
    assert int(count) > 20


def test_a_class_name_means_one_class() -> None:
    places = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].add(path.relative_to(PACKAGE).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == PAIRS


@pytest.mark.parametrize("folder", ["agents", "baselines", "examples", "experiments", "benchmarks"])
def test_recipes_import_the_library_and_third_parties_only(folder: str) -> None:
    paths = list((ROOT / folder).glob("*.py"))
    assert paths
    siblings = {"agents", "baselines", "examples", "experiments", "benchmarks", "tests"}
    if folder not in ("experiments", "benchmarks"):  # the others are read one at a time; these may share what they run
        siblings |= {path.stem for path in paths}
    for path in paths:
        assert not {name.split(".")[0] for name in imported(path)} & siblings, path
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"codea1_env"}
    for needed in (
        "py.typed",
        "problems/bundled.jsonl",
        "discrete/bundled.jsonl",
        "sandbox/inside/zygote.py",
        "sandbox/docker/Dockerfile",
        "configuration/7b.yaml",
        "viewer/page.html",
        "viewer/main.js",
        "viewer/theme.css",
        "audit/corpus/frozen.yaml",
    ):
        assert f"codea1_env/{needed}" in names


def test_no_merge_was_left_half_done() -> None:
    markers = ("\n" + "<" * 7 + " ", "\n" + ">" * 7 + " ")
    folders = ["agents", "baselines", "benchmarks", "codea1_env", "docs", "examples", "experiments", "tests"]
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    texts = [path for path in files if path.suffix in {".md", ".py", ".toml", ".txt", ".yaml"}]
    assert len(texts) > 200
    assert not [path for path in texts if any(marker in "\n" + path.read_text() for marker in markers)]
