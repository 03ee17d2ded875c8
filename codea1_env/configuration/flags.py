"""The arguments of every trainer's command line, and the parser that reads them. Checks are in `arguments.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

from codea1_env.configuration.presets import preset_names
from codea1_env.configuration.sections import TRACKERS
from codea1_env.records.addresses import place_of
from codea1_env.terminal import Parser


def parser_of(description: str, *, takes_tester: bool = False) -> Parser:
    """A recipe's parser. An argument that the recipe does not have is None. `takes_tester`: it has a tester that does
    not learn."""
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    _add_what_runs(parser)
    _add_what_is_kept(parser)
    _add_where_it_runs(parser)
    parser.set_defaults(tester=None)
    if takes_tester:
        parser.add_argument("--tester", metavar="DIR", type=Path, help="the tester that writes the suites: a run's "
                            "directory (its tester/final) or a model in Hugging Face format. Default: the base "
                            "model")  # fmt: skip
    return parser


def _add_what_runs(parser: Parser) -> None:
    parser.add_argument("--preset", metavar="NAME", help=f"one of {', '.join(preset_names())} (docs/training.md). "
                        "smoke: random models, in seconds; mini, bands, demo, shift: tiny models from scratch, in "
                        "minutes; 0.5b...: a pretrained model with adapters, on a core or a GPU; skill: the public "
                        "write-up's numbers; others: the paper's runs. Default: mini. Units and sources of values: "
                        "run_sections.py, grpo_section.py and the YAML files in "
                        "codea1_env/configuration")  # fmt: skip
    parser.add_argument("--config", metavar="FILE", type=Path, help="a YAML file that changes fields of a preset, such "
                        "as `round: {suites: 8}`, in the form of a run's config.yaml. `extends: NAME or FILE` names "
                        "the preset. Unknown keys are refused. Default: none")  # fmt: skip
    parser.add_argument("--output", metavar="DIR", type=place_of, help="the run's directory, new or empty. It may be "
                        "an address of fsspec, such as s3://bucket/run: the run then works in CODEA1_CACHE and copies "
                        "every checkpoint there. Default: the first free one of runs/PRESET-seedN, "
                        "runs/PRESET-seedN-2, ...; a baseline has its own name there, such as runs/golden-seedN, or "
                        "runs/golden-PRESET-seedN if the preset is not mini")  # fmt: skip
    parser.add_argument("--model", metavar="MODEL", help="the model of both seats: a directory in Hugging Face format, "
                        "a repository of the hub or, with trainer: packed, a .gguf file. Default: the "
                        "preset's")  # fmt: skip
    parser.add_argument("--problems", metavar="FILE", help="the problem file to train on, as `codea1 data import` "
                        "makes it. Its last problems are held out to measure on, unless the preset names another file "
                        "for that. Default: the preset's")  # fmt: skip
    parser.add_argument("--seed", metavar="N", help="seed of problems, sampling and order, 0 to 2^31 - 1. Default: 0")
    parser.add_argument("--rounds", metavar="N", help="rounds of the duel, 1 to 1000000. Default: the preset's "
                        "(paper: 111)")  # fmt: skip


def _add_what_is_kept(parser: Parser) -> None:
    parser.add_argument("--save-rounds", metavar="N", help="rounds between checkpoints, 1 to 1000000. Default: the "
                        "preset's")  # fmt: skip
    parser.add_argument("--keep-checkpoints", metavar="N", help="checkpoints kept per seat, 1 to 1000000: those of the "
                        "last rounds that both seats have. Default: the preset's, 3")  # fmt: skip
    parser.add_argument("--keep-duels", metavar="N", help="questions of each round whose games are kept for `codea1 "
                        "view`, 0 to 4096. Default: the preset's, 1")  # fmt: skip
    parser.add_argument("--report-to", metavar="NAME", action="append", help="where metrics go beside metrics.jsonl: "
                        f"one of {', '.join(TRACKERS)}, or none; may be given several times. wandb and trackio must be "
                        "installed, and their own environment variables set them up (WANDB_MODE, WANDB_PROJECT, "
                        "TRACKIO_DIR, ...). Default: the preset's, tensorboard")  # fmt: skip


def _add_where_it_runs(parser: Parser) -> None:
    parser.add_argument("--resume", metavar="DIR", type=place_of, help="continue the run in DIR, or at an address, "
                        "from the latest round that both seats have saved, with its configuration. --rounds may extend "
                        "it. Default: a new run")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="print the plan of the run and end. It shows rows, "
                        "tokens, memory, places, bytes on disk, and how many problems of its files can be judged. The "
                        "exit code is 2 if the run cannot work. Default: run")  # fmt: skip
    parser.add_argument("--engine", metavar="NAME", help="local: both seats take turns in this process. ray: each seat "
                        "has its own processes, on this machine or a cluster, as the configuration's `placement` says "
                        "(extra `ray`). The same seed gives the same weights. Default: local; for a resumed run, its "
                        "own engine")  # fmt: skip
    parser.add_argument("--ray-address", metavar="ADDRESS", help="HOST:PORT of a running Ray cluster that this machine "
                        "is part of, or auto. The run's directory must be on a file system that the cluster's nodes "
                        "share. Default: RAY_ADDRESS, or a new cluster on this machine")  # fmt: skip
