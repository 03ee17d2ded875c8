"""The sections of a preset that do not concern the model: what a run asks, learns from and measures.

Under each field: its unit, then where its value comes from ("paper": the published schedule, see the algorithm's
section on optimisation; "miniature": measured for this family, docs/lab-notes.md). The ranges stand in the field.

Does not promise that any combination of values within the ranges trains well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codea1_env.configuration.sections import Section, choice, real, switch, text, whole
from codea1_env.errors import ConfigurationError
from codea1_env.problems.families import FAMILIES


@dataclass(frozen=True, slots=True)
class ProblemsPreset(Section):
    """Which problems of a procedural family the run trains on and is measured on."""

    TOLD_BY: ClassVar[tuple[str, ...]] = ("family",)

    family: str = choice("miniature", tuple(FAMILIES))
    """A module of codea1_env/problems/families/. miniature: lists of numbers, and edges. bands: one number, and aim.
    shift: that, and bugs that move. The tiny models speak the language of the one that they are made for. fineprint:
    plain English with clauses, for pretrained models. fineprint_words: the same on words."""
    shift: float = real(1.0, 0.0, 1.0)
    """Family shift: how far one slip keeps a program's later rules right, in what the base model learns from. 0: rules
    slip independently. Other families ignore it."""
    train: int = whole(200, 1, 10_000)
    """Problems of the training split. Few, so that each comes back and the Mistake Book can act (miniature)."""
    held_out: int = whole(150, 1, 1_000)
    """Problems of the held-out split for the evaluation before and after."""
    held_out_seed: int = whole(0, 0, 2**31)
    """Seed of the held-out problems. It is the same for every run, so that runs can be compared."""
    golden_edge: float = real(0.0, 0.0, 1.0)
    """Probability that a golden test looks at an edge. 0: golden tests as weak as hurried people write them."""
    hidden_as_golden: bool = switch()
    """Whether training problems get their hidden tests as golden tests: this is the ceiling of golden-test training,
    not a method. Held-out problems keep theirs."""


@dataclass(frozen=True, slots=True)
class ProblemFiles(Section):
    """Problems from files, as `codea1 data import` writes them. Paths are as seen from the working directory."""

    file: str = text()
    """JSON lines: what the run trains on. Paper: 9,688 hard questions of KodCode-V1."""
    held_out_file: str = text("")
    """JSON lines with hidden tests: what both seats are measured on. Paper: HumanEval+, MBPP+, BigCodeBench. Empty: the
    `held_out_limit` problems of `file` behind the `limit` that are trained on, its last ones without a limit. Golden
    tests count as hidden ones there."""
    limit: int = whole(0, 0, 100_000_000)
    """How many problems of `file` are used, the first of those that can be; 0: all."""
    held_out_limit: int = whole(0, 0, 1_000_000)
    """Problems of `held_out_file` that are used; 0: all."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        if not self.held_out_file and not self.held_out_limit:
            raise ConfigurationError("held_out_file must be a file, or held_out_limit at least 1, got neither")


@dataclass(frozen=True, slots=True)
class RoundPreset(Section):
    """One round: questions asked, programs and suites sampled, and what is learnt from."""

    questions: int = whole(8, 1, 4096)
    """Questions a round. Paper: 256."""
    programs: int = whole(8, 2, 64)
    """N: programs a question; the group of the coder's advantages. Paper: 8."""
    suites: int = whole(4, 2, 64)
    """M: suites a program; the group of the tester's advantages. Paper: 8."""
    attacked: int = whole(1, 1, 64)
    """update_n: programs a question whose suites train the tester, by the spread of their rewards. Paper: 1."""
    updates: int = whole(1, 1, 16)
    """Optimizer steps a round, of each seat. Paper: 2. Must divide both seats' rows of a round.
    With trainer: packed at most `questions`, whose groups are not divided: a step would have no rows."""
    coder_prompt_tokens: int = whole(0, 0, 1 << 20)
    """Longest prompt of the coder, in tokens; questions with a longer one are left out, and counted. 0: what the
    response leaves of the model's context. Paper: 4096."""
    tester_prompt_tokens: int = whole(0, 0, 1 << 20)
    """Longest prompt of the tester (question and program), in tokens; a program with a longer one is not attacked: no
    seat is paid for it, and it is counted. 0: what the response leaves of the model's context. Paper: 8192."""


@dataclass(frozen=True, slots=True)
class EvaluationPreset(Section):
    """How often and on how much the seats are measured. The runs before and after take all held-out problems."""

    every_rounds: int = whole(25, 0, 1_000_000)
    """Rounds between evaluations during training; 0: only before and after."""
    problems: int = whole(40, 1, 1_000)
    """Held-out problems of an evaluation during training."""
    hidden_rounds: int = whole(25, 0, 1_000_000)
    """Rounds between those whose programs are also run on their questions' hidden tests, for the collusion gap of the
    metrics. No seat is paid for it. 0: never."""
    samples: int = whole(8, 1, 256)
    """Programs sampled per problem, and suites per mutant."""
    mutants: int = whole(1, 1, 16)
    """Mutants per held-out problem shown to the tester."""
    temperature: float = real(1.0, 0.0, 10.0)
    """Sampling temperature when measured; 0 is greedy. Paper: 0.7."""
    top_p: float = real(1.0, 0.01, 1.0)
    """Probability mass that is kept when measured. Paper: 0.95."""
    tokens: int = whole(0, 0, 65_536)
    """Longest response when measured, in tokens; 0: as in training. Paper: 2048."""


@dataclass(frozen=True, slots=True)
class MemoryPreset(Section):
    """How much of an optimizer step a device holds at a time, and in which precision. No value changes the method."""

    coder_rows_per_device: int = whole(0, 0, 65_536)
    """Rows of one forward and backward pass of the coder; gradients are accumulated until an update's rows are done.
    0: all rows of an update at once."""
    tester_rows_per_device: int = whole(0, 0, 65_536)
    """The same for the tester."""
    bfloat16: bool = switch()
    """Compute in bfloat16, on GPUs always; what is kept stays in float32, or steps of 1e-6 would be rounded away."""
    gradient_checkpointing: bool = switch()
    """Keep the inputs of each block only, and compute the rest again in the backward pass. On GPUs always."""
    gpu_gib: float = real(80.0, 1.0, 10_000.0)
    """GiB of one GPU, for the plan (`--dry-run`); nothing else reads it."""

    def rows_per_device(self, seat: str) -> int:
        """The rows of coder, tester, or player, which is the one model of self-play and takes as many as the coder."""
        return self.tester_rows_per_device if seat.startswith("tester") else self.coder_rows_per_device
