"""The arguments of every trainer's command line, and the parser that reads them. Checks are in `arguments.py`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codea1_env.configuration.presets import preset_names
from codea1_env.configuration.sections import TRACKERS
from codea1_env.records.addresses import place_of
from codea1_env.terminal import Parser

ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "--preset": {
        "metavar": "NAME",
        "help": f"one of {', '.join(preset_names())} (docs/training.md). smoke: random models, in seconds; mini, "
        "bands, demo, shift: tiny models from nothing, in minutes; 0.5b...: a pretrained model with adapters, on a "
        "core or a GPU; skill: the public write-up's numbers; others: the paper's runs. Default: mini. "
        "Units and sources of values: run_sections.py, grpo_section.py and the YAML files in "
        "codea1_env/configuration",
    },
    "--config": {
        "metavar": "FILE",
        "type": Path,
        "help": "YAML file with overrides of the preset, in the form of a run's config.yaml, e.g. `round: {suites: "
        "8}`; `extends: NAME or FILE` says of which. Default: none. Unknown keys are refused",
    },
    "--output": {
        "metavar": "DIR",
        "type": place_of,
        "help": "directory of the run, new or empty, or an address of fsspec such as s3://bucket/run, to which a "
        "directory in CODEA1_CACHE is copied at every checkpoint. Default: the first free one of runs/PRESET-seedN, "
        "runs/PRESET-seedN-2, ...; of a baseline, e.g. runs/golden-seedN, and runs/golden-PRESET-seedN where the "
        "preset is not mini",
    },
    "--model": {
        "metavar": "MODEL",
        "help": "the model of both seats: a directory in Hugging Face format, a repository of the hub or, with "
        "trainer: packed, a .gguf file. Default: the preset's",
    },
    "--problems": {
        "metavar": "FILE",
        "help": "JSON lines of `codea1 data import`: what the run trains on; unless the preset names another file for "
        "it, the last ones are what it is measured on. Default: the preset's",
    },
    "--seed": {"metavar": "N", "help": "seed of problems, sampling and order, 0 to 2^31 - 1. Default: 0"},
    "--rounds": {"metavar": "N", "help": "rounds of the duel, 1 to 1000000. Default: the preset's (paper: 111)"},
    "--save-rounds": {"metavar": "N", "help": "rounds between checkpoints, 1 to 1000000. Default: the preset's"},
    "--keep-checkpoints": {
        "metavar": "N",
        "help": "checkpoints kept of each seat, 1 to 1000000: those of the last rounds that both seats have. Default: "
        "the preset's, 3",
    },
    "--keep-duels": {
        "metavar": "N",
        "help": "questions a round whose games are kept for `codea1 view`, 0 to 4096. Default: the preset's, 1",
    },
    "--report-to": {
        "metavar": "NAME",
        "action": "append",
        "help": f"what gets the metrics beside metrics.jsonl, one of {', '.join(TRACKERS)}, or none; may be given "
        "several times. wandb and trackio must be installed, and are set up by their own environment variables "
        "(WANDB_MODE, WANDB_PROJECT, TRACKIO_DIR, ...). Default: the preset's, tensorboard",
    },
    "--resume": {
        "metavar": "DIR",
        "type": place_of,
        "help": "go on with the run in DIR, or at an address, from the latest round that both seats have saved, with "
        "its configuration; with --rounds, up to that round. Default: a new run",
    },
    "--dry-run": {
        "action": "store_true",
        "help": "print the plan of the run and end: rows, tokens, memory, places, bytes on disk, and how many problems "
        "of its files can be judged; status 2 where it cannot work. Default: run",
    },
    "--engine": {
        "metavar": "NAME",
        "help": "local: both seats take turns in this process. ray: each seat in processes of its own, on this machine "
        "or a cluster, as the configuration's `placement` says (extra `ray`). Same seed, same weights. Default: local; "
        "of a resumed run, the engine it had",
    },
    "--ray-address": {
        "metavar": "ADDRESS",
        "help": "HOST:PORT of a running Ray cluster that this machine is part of, or auto; the run's directory must be "
        "on a file system that its nodes share. Default: RAY_ADDRESS, or a cluster of its own on this machine",
    },
}
"""What argparse is told of each."""
TESTER: Mapping[str, Any] = {
    "metavar": "DIR",
    "type": Path,
    "help": "the tester that writes the suites: a run's directory (its tester/final) or a model in Hugging Face "
    "format. Default: the base model",
}
"""Of `--tester`, which recipes take that have a tester that does not learn."""


def parser_of(description: str, *, takes_tester: bool = False) -> Parser:
    """A recipe's parser. An argument that the recipe does not have is None."""
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    for name, told in ARGUMENTS.items():
        parser.add_argument(name, **told)
    parser.set_defaults(tester=None)
    if takes_tester:
        parser.add_argument("--tester", **TESTER)
    return parser
