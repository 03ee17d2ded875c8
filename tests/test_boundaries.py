"""What may import what, what an import costs nobody, and what the wheel holds."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "codea1_env"

# One way only: a module may import from its own layer and from lower ones.
LAYERS = [
    {"errors", "registration", "starting", "terminal", "whole_files", "yaml_files", "checks", "class_paths", "extras"},
    {
        "problems",
        "sandbox",
        "parsing",
        "pure_expressions",
        "literals",
        "inlining",
        "grammar",
        "responses",
        "released_reading",
        "suites",
        "spans",
        "signatures",
        "purity",
        "purity_names",
        "schedule",
        "mutator",
    },
    {"duel", "equality", "bounded_cache", "book_files", "book_policies", "metrics", "estimates"},
    {"oracle", "execution", "returned"},
    {"judge", "prompts"},
    {"reward_terms", "rewards", "tester_rewards", "mistake_book"},
    {"validation"},
    {"oracles"},
    {"scores"},
    {"bouts"},
    {"arena"},
    {"tester_book", "recorded", "recording", "ratings", "diagnostics"},
    {"players", "scoring", "spaces", "rendering", "self_test", "self_test_programs", "doctor", "importing"},
    {"game_arguments", "episode", "tournament", "mutation", "coverage"},
    {"suite_quality"},
    {"player_evaluation"},
    {"environment", "single_seat"},
    {"discrete"},
    {"testing"},
    {"training", "adapters"},
    {"report", "viewer"},
    {"cli_common", "cli_players"},
    {
        "cli",
        "cli_data",
        "cli_doctor",
        "cli_eval",
        "cli_play",
        "cli_pools",
        "cli_replay",
        "cli_report",
        "cli_sandbox",
        "cli_score",
        "cli_tournament",
        "cli_view",
    },
]
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


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path.parent.name != "inside" and path.parent != ROOT]


def layer(name: str) -> int:
    (found,) = [number for number, names in enumerate(LAYERS) if name in names]
    return found


def top(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        return
    own = layer(top(path))
    for name in imported(path):
        if (
            name.startswith("codea1_env.")
            and (PACKAGE / name.split(".")[1]).exists() | (PACKAGE / f"{name.split('.')[1]}.py").exists()
        ):
            other = name.split(".")[1]
            assert layer(other) <= own, f"{path.name} imports {name}"


DECIDES_WHAT_RUNS = ("schedule", "execution", "purity", "purity_names", "sandbox")
"""Whatever they need, too."""
KNOWS_WHAT_IS_RIGHT = {
    "equality", "oracle", "oracles", "validation", "judge", "rewards", "tester_rewards", "duel", "bouts",
    "mistake_book",
}  # fmt: skip


def test_nothing_that_decides_what_runs_imports_what_knows_or_compares_right_values() -> None:
    reached, waiting = set(), set(DECIDES_WHAT_RUNS)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        paths = sorted((PACKAGE / name).glob("*.py")) if (PACKAGE / name).is_dir() else [PACKAGE / f"{name}.py"]
        names = {part.split(".")[1] for path in paths for part in imported(path) if part.startswith("codea1_env.")}
        waiting |= {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()} - reached
    assert "parsing" in reached  # it follows imports
    assert not reached & KNOWS_WHAT_IS_RIGHT


def test_only_training_imports_what_is_heavy_and_each_backend_its_own_library() -> None:
    own = {
        PACKAGE / "sandbox" / "ray_cluster.py": {"ray"},
        PACKAGE / "problems" / "sources" / "rows.py": {"datasets"},
        PACKAGE / "discrete" / "matrix_games.py": {"scipy"},
        PACKAGE / "players" / "hugging_face.py": {"torch", "transformers"},
        PACKAGE / "adapters" / "rllib.py": {"ray"},
        PACKAGE / "estimates.py": {"scipy"},
        PACKAGE / "report" / "picture.py": {"matplotlib"},
        PACKAGE / "players" / "vllm_offline.py": {"vllm"},
    }
    for path in modules():
        if top(path) != "training":
            assert {name.split(".")[0] for name in imported(path)} & HEAVY == own.get(path, set()), path
            assert ('import_module("docker")' in path.read_text()) == (path == PACKAGE / "sandbox" / "engine.py")


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


@pytest.mark.parametrize("folder", ["agents", "baselines", "examples", "benchmarks"])
def test_recipes_import_the_library_and_third_parties_only(folder: str) -> None:
    paths = list((ROOT / folder).glob("*.py"))
    assert paths
    siblings = {"agents", "baselines", "examples", "benchmarks", "tests"}
    if folder != "benchmarks":  # these are read one at a time; a benchmark may share its load with another
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
        "sandbox/Dockerfile",
        "training/configs/7b.yaml",
        "viewer/page.html",
        "viewer/main.js",
        "viewer/theme.css",
    ):
        assert f"codea1_env/{needed}" in names


def test_no_merge_was_left_half_done() -> None:
    markers = ("\n" + "<" * 7 + " ", "\n" + ">" * 7 + " ")
    folders = ["agents", "baselines", "benchmarks", "codea1_env", "docs", "examples", "tests"]
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    texts = [path for path in files if path.suffix in {".md", ".py", ".toml", ".txt", ".yaml"}]
    assert len(texts) > 200
    assert not [path for path in texts if any(marker in "\n" + path.read_text() for marker in markers)]
