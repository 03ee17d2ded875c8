"""The section `algorithm` of a preset: the estimator that makes advantages of rewards, the loss that uses them, the
optimizer, what samples beside a shared base, and what chooses the questions.

All of them are names of built-in ones or `module:Name` of one's own (docs/your-algorithm.md). The section is plain data
and is checked before anything heavy is imported; `class_paths.py` loads one's own classes. Does not promise that a run
can be resumed after such a module was changed; the run's configuration has a digest of its text at each start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.class_paths import arguments_of, file_of, is_class_path
from codea1_env.configuration.sections import Section, choice, real, text, whole

ADVANTAGES = ("grpo", "question", "rae")
LOSSES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")
"""TRL's, of the pinned version."""
ROLLOUTS = ("continuous", "generate")
NAMED = {
    "advantage": ADVANTAGES,
    "loss_type": LOSSES,
    "rollouts": ROLLOUTS,
    "optimizer": ("adamw",),
    "questions": ("shuffled", "pass_rate"),
}
"""The parts that have a name, and the names that are built in."""
SCALES = ("group", "batch", "none")
ZERO_VARIANCE = ("keep", "drop")
CREDITS = ("suite", "test")


@dataclass(frozen=True, slots=True)
class Algorithm(Section):
    """The default of every field is the paper's method."""

    advantage: str = text("grpo")
    """What a reward is compared with. grpo: the mean of its group (paper). question: a running mean of the question,
    under which the Mistake Book's share of the reward is not cancelled. rae: a running mean of the seat (SPIRAL's
    role-conditioned advantage estimation, arXiv 2506.24119). module:Class: a subclass of `advantages.Estimator`."""
    scale: str = choice("group", SCALES)
    """What advantages are divided by: the deviation of their group (paper), of the whole batch, or nothing."""
    rate: float = real(0.5, 1e-6, 1.0)
    """Weight of a round's mean in the running mean, for advantage: question and rae. SPIRAL: 0.05."""
    loss_type: str = text("dapo")
    """TRL's name of a loss (paper: dapo, the mean over tokens), or module:Name (`training/losses.py`)."""
    zero_variance: str = choice("keep", ZERO_VARIANCE)
    """Groups in which no row has an advantage. keep: they stay in the loss, for the KL term and the mean over tokens
    (paper). drop: they are masked out. Rows without a score always are."""
    resample: int = whole(0, 0, 100)
    """How often the questions of groups whose rows all earn the same are sampled again, for a group that teaches:
    DAPO's dynamic sampling (arXiv 2503.14476) with a bound; 0: never (paper). TRL has no name for it."""
    credit: str = choice("suite", CREDITS)
    """suite: all tokens of a suite have its advantage (paper). test: the tokens of each test have that test's own,
    measured against all tests of the group; the other tokens the suite's."""
    rollouts: str = text("continuous")
    """What samples the responses with trainer: packed. continuous: `language_models/continuous.py`. generate:
    transformers' `generate`, slowly. module:Class: a subclass of `language_models.rollouts.RolloutEngine`."""
    optimizer: str = text("adamw")
    """What takes the step. adamw (paper). module:Class: a subclass of `torch.optim.Optimizer`, e.g. torch.optim:SGD,
    made from the trained parameters, `lr`, and `optimizer_args`; of the section grpo it heeds the rate alone."""
    questions: str = text("shuffled")
    """Which questions a round asks. shuffled: each once, in random order, then again. pass_rate: those of which the
    coder passes some and fails some come first. module:Class: a subclass of `training.round.questions.Chooser`."""
    advantage_args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of one's own estimator, beside the section; as for the next three."""
    loss_args: Mapping[str, Any] = field(default_factory=dict)
    optimizer_args: Mapping[str, Any] = field(default_factory=dict)
    questions_args: Mapping[str, Any] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    """Folders in which modules of one's own are looked for, before the current one: those that this section, `reward`
    and `book.policy` name. `--config` adds the file's folder and the current one."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        for part, known in NAMED.items():
            name = getattr(self, part)
            require(name in known or is_class_path(name), part, f"be one of {', '.join(known)} or module:Name", name)
            kind = part.removesuffix("_type")
            if (given := getattr(self, f"{kind}_args", None)) is not None:
                object.__setattr__(self, f"{kind}_args", arguments_of(kind, name, given))
        are_folders = isinstance(self.path, list | tuple) and all(isinstance(folder, str) for folder in self.path)
        require(are_folders, "path", "be a list of folders", self.path)
        object.__setattr__(self, "path", tuple(self.path))  # YAML has lists only
        must = "be none or batch with advantage: rae, which compares with a seat and with no group"
        require(self.advantage != "rae" or self.scale != "group", "scale", must, self.scale)
        is_grpo = self.advantage == "grpo"
        must = f"be 0 with advantage: {self.advantage}, which learns from equal rewards, too"
        require(is_grpo or not self.resample, "resample", must, self.resample)
        must = "come with advantage: grpo (tests have no running mean)"
        require(is_grpo or self.credit != "test", "credit: test", must, self.advantage)

    @property
    def own(self) -> tuple[str, ...]:
        """The names in it that are one's own."""
        return tuple(name for name in (getattr(self, part) for part in NAMED) if is_class_path(name))


def located(algorithm: Algorithm, *folders: Path) -> Algorithm:
    """The section with the folders in which its own modules are looked for, after a check that the modules are there.

    Raises ConfigurationError. Imports no module except the packages that contain it.
    """
    if not algorithm.own:
        return algorithm
    kept = dict.fromkeys([*algorithm.path, *(str(folder.resolve()) for folder in folders)])
    section = replace(algorithm, path=tuple(kept))
    for part in NAMED:
        if is_class_path(name := getattr(section, part)):
            file_of(name, f"algorithm.{part}", section.path)
    return section


def digests(algorithm: Algorithm, *others: str) -> dict[str, dict[str, str]]:
    """The file of each own name, of the section and of `others`, and the SHA-256 of its text."""
    names = [*algorithm.own, *filter(is_class_path, others)]
    files = {name: file_of(name, "code of one's own", algorithm.path) for name in names}
    return {
        name: {"file": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for name, file in files.items()
    }
