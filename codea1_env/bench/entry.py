"""An entry of the benchmark: a recipe, what it changes in the track's configuration, and a run of it.

A recipe is a script with the trainers' arguments, as in `agents/` and `baselines/`; parts of one's own are
`module:Class`. Its run is a process of its own, which is resumed where it was. Does not measure anything.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

import codea1_env
from codea1_env.bench.track import Track
from codea1_env.checks import require
from codea1_env.class_paths import is_class_path
from codea1_env.closing import end_with
from codea1_env.configuration.algorithm import digests, located
from codea1_env.configuration.presets import Preset, preset_from_dict
from codea1_env.errors import Codea1Error, ConfigurationError
from codea1_env.records.addresses import CONFIG_FILE, SUMMARY
from codea1_env.whole_files import write_whole
from codea1_env.yaml_files import read_yaml

BASE = "base"
RECIPES: Mapping[str, tuple[str, str]] = {
    BASE: ("", "nothing is trained"),
    "golden": ("baselines/golden_tests.py", "the coder alone, paid for golden tests"),
    "frozen": ("baselines/frozen_tester.py", "the coder learns against the base tester, which never does"),
    "self-play": ("baselines/self_play.py", "one model in both seats, with the reference"),
    "sft": ("baselines/sft.py", "the tester by supervised learning on validated suites"),
    "expert": (
        "baselines/expert_iteration.py",
        "expert iteration: the coder learns its programs that pass golden tests",
    ),
    "code-a1": ("agents/train_grpo.py", "Code-A1: coder and tester learn against each other"),
}
"""Our own entries: recipes as seen from a clone, and what they are."""
DEFAULT = "code-a1"
PARTS = {
    "advantage": "algorithm",
    "loss_type": "algorithm",
    "optimizer": "algorithm",
    "questions": "algorithm",
    "rollouts": "algorithm",
    "tester_reward": "reward",
    "coder_reward": "reward",
    "accept": "reward",
    "policy": "book",
}
"""What may be `module:Class`, and its section of the configuration."""
ROOT = Path(codea1_env.__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Entry:
    """One method, and how it is called."""

    name: str
    recipe: Path | None
    """None: nothing is trained."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What it overrides in the track's configuration."""
    what: str = ""
    who: str = ""

    def configuration(self, track: Track) -> str:
        """As YAML, for `--config`."""
        return yaml.safe_dump({"extends": str(track.file)} | dict(self.changes), sort_keys=False)

    def own_code(self, preset: Preset) -> dict[str, dict[str, str]]:
        """File and digest of the recipe and of every part of one's own."""
        own = {
            name: {"file": Path(found["file"]).name, "sha256": found["sha256"]}
            for name, found in digests(preset.algorithm, *preset.reward.own, preset.book.policy).items()
        }
        if self.recipe is not None:
            sha256 = hashlib.sha256(self.recipe.read_bytes()).hexdigest()
            own["recipe"] = {"file": _shown(self.recipe), "sha256": sha256}
        return own


def entry_of(recipe: str, *, config: Path | None, parts: Sequence[str], name: str | None, who: str, what: str) -> Entry:
    """`recipe`: the name of an own entry, or a script. `parts`: `PART=module:Class`. Raises ConfigurationError."""
    known = RECIPES.get(recipe)
    script = Path(recipe) if known is None else _in_clone(known[0]) if known[0] else None
    is_recipe = script is None or (script.is_file() and script.suffix == ".py")
    require(is_recipe, "ENTRY", f"be one of {', '.join(RECIPES)} or a recipe, FILE.py", recipe)
    changes = _changes(config, parts)
    if script is None and changes:
        raise ConfigurationError(f"{BASE} must come without --config and --part, since nothing is trained, got both")
    own = [each.partition(":")[2] for each in parts]
    default = config.stem if config else "-".join(own) if own else recipe if known else Path(recipe).stem
    is_ours = known is not None and not changes
    entry = Entry(name or default, script, changes, what or (known[1] if known and is_ours else ""), who)
    if not entry.name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise ConfigurationError(f"--name must be of letters, digits, -, _ and ., got {entry.name!r}")
    return entry


def _in_clone(script: str) -> Path:
    """Recipes are not installed: they are in the clone."""
    places = [Path.cwd() / script, ROOT / script]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ConfigurationError(f"codea1 bench run must be called in a clone, got no {script} in {places[0].parent}")
    return found


def _changes(config: Path | None, parts: Sequence[str]) -> dict[str, Any]:
    found = (read_yaml(config, "--config") or {}) if config else {}
    if not isinstance(found, dict) or "extends" in found or "name" in found:
        raise ConfigurationError(
            f"--config must be a mapping without `extends` and `name`, for it changes the track's, got {config}"
        )
    changes: dict[str, Any] = dict(found)
    for part in parts:
        which, _, value = part.partition("=")
        if which not in PARTS or not is_class_path(value):
            raise ConfigurationError(f"--part must be PART=module:Class, PART of {', '.join(PARTS)}, got {part!r}")
        section = changes.setdefault(PARTS[which], {})
        if not isinstance(section, dict) or which in section:
            raise ConfigurationError(f"--part {which} must not be in --config, too, got both")
        changes[PARTS[which]] = section | {which: value}
    folders = [str(config.parent.resolve())] if config else []
    if changes:  # the run's configuration lies elsewhere
        algorithm = changes.get("algorithm") or {}
        if isinstance(algorithm, dict):
            changes["algorithm"] = {"path": [*folders, str(Path.cwd())]} | algorithm
    return changes


def _shown(script: Path) -> str:
    """As seen from the clone, where it is of it; else its name, for folders are nobody's business."""
    resolved = script.resolve()
    return str(resolved.relative_to(ROOT)) if resolved.is_relative_to(ROOT) else resolved.name


def prepared(entry: Entry, track: Track, run: Path) -> Preset:
    """What the entry comes to, written down beside the run's directory. Raises ConfigurationError for an entry that
    changes what is fixed, and where another entry's run is there; then nothing is written."""
    preset = preset_from_dict(entry.changes, track.preset(), entry.name)
    track.require_kept(preset)
    file, text = configuration_of(run), entry.configuration(track)
    known = read_yaml(file, "-o") if run.exists() and file.is_file() else None
    if known is not None and {**known, "extends": ""} != {**yaml.safe_load(text), "extends": ""}:  # wherever it lies
        raise ConfigurationError(f"-o must be new or of the same entry, got the run of another in {run}")
    located(preset.algorithm)
    run.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    return preset


def configuration_of(run: Path) -> Path:
    """What `--config` gets. Not NAME.yaml, which may be the user's own."""
    return run.with_name(f"{run.name}.bench.yaml")


def train(entry: Entry, run: Path, *, seed: int, model: Path | None) -> float:
    """Run the entry's recipe as it was `prepared`; the CPU seconds that it took."""
    if entry.recipe is None:
        return 0.0
    return run_recipe(entry.recipe, run, config=configuration_of(run), seed=seed, model=model)


def run_recipe(
    recipe: Path, run: Path, *, config: Path, seed: int, model: Path | None, more: Sequence[str] = ()
) -> float:
    """Run a recipe in a process of its own, or what is left of it, with its output in a log beside its directory; the
    CPU seconds that it took. `more`: further arguments. Raises Codea1Error where it fails."""
    if (run / SUMMARY).is_file():
        return 0.0
    command = [sys.executable, str(recipe)]
    if (run / CONFIG_FILE).is_file():
        command += ["--resume", str(run)]
    else:
        command += ["--config", str(config), "--seed", str(seed), "--output", str(run), "--report-to", "none", *more]
        command += ["--model", str(model)] if model else []
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | os.environ | {"PYTHONPATH": path}
    log, before = run.with_suffix(".log"), cpu_s(resource.RUSAGE_CHILDREN)
    with log.open("a", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=environment, preexec_fn=partial(end_with, os.getpid())
        )
        try:
            status = process.wait()
        except KeyboardInterrupt as error:  # which the recipe has got, too: it saves what it has
            if error.args:  # SIGTERM, which it may not have got
                process.terminate()
            process.wait()
            raise
    if status:
        last = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no output"])[-1]
        raise Codea1Error(f"{recipe.name} must run to its end, got status {status}: {last[-300:]}; see {log}")
    if not (run / CONFIG_FILE).is_file():
        raise Codea1Error(f"{recipe.name} must be a recipe (docs/your-algorithm.md) and leave a run, got none in {run}")
    return cpu_s(resource.RUSAGE_CHILDREN) - before


def cpu_s(whose: int) -> float:
    """Seconds that this process or its ended children have had. `whose`: of `resource.getrusage`."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime
