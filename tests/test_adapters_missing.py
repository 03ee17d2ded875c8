"""An adapter or a script whose library is not there says what to install, and a script says all of it."""

import importlib
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("openenv", "openenv", "openenv"),
        ("openenv_server", "openenv", "openenv"),
        ("verifiers", "verifiers", "verifiers"),
        ("skyrl", "skyrl_gym", "skyrl"),
        ("nemo_gym", "nemo_gym", "nemo-gym"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(
    module: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # an import of it fails
    monkeypatch.delitem(sys.modules, f"codea1_env.adapters.{module}", raising=False)
    says = rf"needs the extra `{extra}`: pip install '\.\[{extra}\]' in the clone \(got: .*{library}"
    with pytest.raises(ImportError, match=says):
        importlib.import_module(f"codea1_env.adapters.{module}")


ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
BARE = {"numpy", "yaml"}
RECIPES = [ROOT / "agents" / "train_grpo.py", *sorted((ROOT / "baselines").glob("*.py"))]
SCRIPTS = [
    path
    for folder in ("benchmarks", "examples", "experiments")
    for path in sorted((ROOT / folder).glob("*.py"))
    if ("for_script(" if folder == "examples" else "__main__") in path.read_text()
]
RUN = """
import gc, importlib.util, os, runpy, sys
import codea1_env
missing, scripts, arguments = (each.split() for each in sys.argv[1:])
sys.modules.update(dict.fromkeys(missing))  # an import of them fails
import codea1_env.configuration.arguments, codea1_env.evaluation, codea1_env.viewer  # once for all
gc.freeze()  # or every process would look through all that when it ends
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in missing else find(name, *rest)
for script in scripts:
    sys.argv = [script, *arguments]
    sys.stderr.write(f"== {script}\\n")
    sys.stderr.flush()
    if os.fork():
        os.wait()
    else:
        sys.path.insert(0, os.path.dirname(script))
        runpy.run_path(script, run_name="__main__")
        break
"""


def imports_of(extras: set[str], deep: bool = False) -> set[str]:
    """What the packages of these extras are imported as; of one that is not installed, its name. `deep`: also what
    they require."""
    rows = [row for extra in extras for row in EXTRAS[extra]]
    listed: set[str] = set()
    while rows:
        package = re.split(r"[^\w.-]", rows.pop())[0].lower()
        if package not in listed:
            listed.add(package)
            with suppress(PackageNotFoundError):
                rows += [row for row in (requires(package) or () if deep else ()) if "extra ==" not in row]
    known = packages_distributions().items()
    return {name for name, packages in known if listed & {each.lower() for each in packages}} | listed


def told(missing: set[str], scripts: list[Path], *arguments: str) -> dict[Path, str]:
    """What each script says on stderr, run by path where these cannot be imported."""
    argv = [" ".join(sorted(missing)), " ".join(map(str, scripts)), " ".join(arguments)]
    done = subprocess.run([sys.executable, "-c", RUN, *argv], capture_output=True, text=True, cwd=ROOT)
    _, *parts = re.split(r"^== ", done.stderr, flags=re.MULTILINE)
    return {Path(script): said.strip() for script, said in (part.split("\n", 1) for part in parts)}


@pytest.fixture(scope="module")
def bare() -> dict[Path, str]:
    """What the scripts say where `pip install .` was all."""
    nothing = imports_of(set(EXTRAS)) - BARE
    return told(nothing, SCRIPTS, "--help") | told(nothing, RECIPES, "--preset", "smoke")


def named(said: str) -> set[str]:
    found = re.fullmatch(r".*\.py: .* the extra `([\w,]+)`: pip install '\.\[\1\]' in the clone \(got: .*\)", said)
    return set(found[1].split(",")) if found else set()


def test_a_script_without_its_libraries_says_in_one_line_what_to_install(bare: dict[Path, str]) -> None:
    assert set(bare) == {*SCRIPTS, *RECIPES}
    assert {str(path): said for path, said in bare.items() if said and not named(said)} == {}
    for path in (*RECIPES, *(path for path in SCRIPTS if "for_script(" in path.read_text())):
        assert named(bare[path]) <= set(EXTRAS)
        assert named(bare[path]), path


@pytest.mark.slow
def test_the_extras_that_a_script_names_are_all_that_it_needs(bare: dict[Path, str]) -> None:
    """Each is tried where every other extra's packages are missing."""
    wanted: dict[frozenset[str], list[Path]] = {}
    for path in SCRIPTS:
        if path.parent.name != "examples" and named(bare[path]):
            wanted.setdefault(frozenset(named(bare[path])), []).append(path)
    assert len(wanted) > 2
    for extras, scripts in wanted.items():
        missing = imports_of(set(EXTRAS) - extras) - imports_of(set(extras), deep=True) - BARE
        assert {str(path): said for path, said in told(missing, scripts, "--help").items() if said} == {}
