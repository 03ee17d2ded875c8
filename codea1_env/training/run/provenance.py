"""What a run's directory must say to be understood years later: versions, code, processor, problems, base model.

Does not promise that a run can be repeated on other hardware, whose arithmetic has other last bits; it says on which it
was made, and from which weights.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from codea1_env.extras import extra
from codea1_env.judging.version import FIRST, VERSION

PACKAGES = ("codea1-env", "torch", "transformers", "trl", "accelerate", "datasets", "tokenizers", "numpy")
OPTIONAL_PACKAGES = ("ray", "vllm", "deepspeed", "peft")
INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "avx", "sse4_2", "asimd")
"""Flags of Linux, the widest vectors first; with the first two, models compute in bfloat16 (`memory.bfloat16`)."""
SIMULATED = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
"""Variables by which PyTorch and its libraries do as another processor would."""

FILES = """\
The files of this run:

config.yaml      everything that decides the run: recipe, seed, preset with every value;
                 `data`: hashes of the problems;
                 `base`: hash of the weights that it began with, `tester_weights`: of a tester that does not learn;
                 `starts`: one entry for each time it was started or resumed, with versions, code and processor;
                 code of your own that `preset` names is there by its hash, and is not copied
metrics.jsonl    one record a line: `kind` round (the arena's scores), seat (the trainer's), evaluation (held out)
book.jsonl       the Mistake Book at the end: per question the tests that programs failed, and how often; for more than
                 4096 questions a directory, book/, of such files, which index.json names
hidden_tests.json
                 which hidden tests of the held-out problems the coder passed, by rounds done: bits of hexadecimal
                 numbers, the first test lowest
duels/           round-N.jsonl: games of some questions of each round, as recordings; `codea1 view` shows them
summary.json     base against trained, with intervals over held-out problems, and the cost
curves.png       evaluations and rounds; tensorboard/ holds the same numbers, unless told otherwise (--report-to)
failure.txt      where the last start failed under the engine ray: the first cause with its traceback
coder/, tester/  final/: the trained model, its tokenizer and its card (README.md) in Hugging Face format
                 checkpoint-STEP/: model, optimizer, schedule, generators, of the coder also the Mistake Book;
                 usable only with complete.json, which lists its files
lock             held while a process writes here
"""


def this_start(engine: str, rounds_done: int, started: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """`started`: date and time. `own`: code of the user's own, by name. A package that is not there is left out."""
    return {
        "started": started,
        "rounds_done": rounds_done,
        "engine": engine,
        "versions": {"python": platform.python_version()} | _versions(),
        "judge": VERSION,
        "code": code_revision(Path(__file__).parent),
        **({"own_code": dict(own)} if own else {}),
        "platform": platform.platform(),
        "processor": processor(os.environ),
    }


def processor(environment: Mapping[str, str]) -> dict[str, Any]:
    """What the arithmetic of a run depends on. `environment`: may tell libraries to do as an older processor would."""
    with extra("train", "training needs"):
        import torch  # here: the study, which starts runs, needs the rest of this module without it
    flags = _cpu_entry("flags").split()
    told = {name: environment[name] for name in SIMULATED if name in environment}
    return {
        "model": processor_name(),
        "instructions": next((name for name in INSTRUCTIONS if name in flags), "not known"),
        "torch": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
        **({"told": told} if told else {}),
    }


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two starts of a run, of the things on which the last bits of its arithmetic depend, code of
    one's own included."""
    parts: dict[str, list[Any]] = {"PyTorch": [start.get("versions", {}).get("torch") for start in (before, now)]}
    parts["the judge: version"] = [start.get("judge", FIRST) for start in (before, now)]
    for name in ("instructions", "torch", "threads", "gpu", "told"):
        parts[f"processor: {name}"] = [start.get("processor", {}).get(name) for start in (before, now)]
    then, today = (start.get("own_code", {}) for start in (before, now))
    for name in (name for name in today if name in then):
        parts[f"the code of {name}"] = [str(own.get("sha256"))[:12] for own in (then[name], today[name])]
    return [f"{name} {old or 'none'}, now {new or 'none'}" for name, (old, new) in parts.items() if old != new]


def processor_name() -> str:
    """As the processor calls itself."""
    return _cpu_entry("model name") or platform.processor() or platform.machine()


def _cpu_entry(name: str) -> str:
    """Of the first processor in Linux's list; empty where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name) and ":" in line), "")


def weights_hash(model: Path) -> str:
    """SHA-256 over the weights in a directory, file by file in order of their names, or over a .gguf file."""
    digest = hashlib.sha256()
    files = [model] if model.is_file() else sorted(model.glob("*.safetensors")) or sorted(model.glob("*.bin"))
    for weights in files:
        with weights.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def code_revision(directory: Path) -> dict[str, Any]:
    """The git revision of a checkout and whether it is dirty: a tracked file differs, or there is Python or YAML that
    git does not know. Pages and recordings that a command left there change no run. Empty where there is none."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        # An installed package may lie inside some other checkout, e.g. in its virtual environment.
        if not git("ls-files", "--", "."):
            return {}
        changed = git("status", "--porcelain", "--untracked-files=no")
        new = git("ls-files", "--others", "--exclude-standard", "--", ":/*.py", ":/*.yaml")
        return {"git": git("rev-parse", "HEAD"), "dirty": bool(changed or new)}
    except (OSError, subprocess.CalledProcessError):
        return {}


def _versions() -> dict[str, str]:
    versions = {}
    for name in (*PACKAGES, *OPTIONAL_PACKAGES):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
