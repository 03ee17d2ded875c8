"""An algorithm of one's own for both seats: REINFORCE++, in the place of the estimator and the loss that are built in.

    cp examples/own_algorithm.py examples/own.yaml SOME/FOLDER
    python agents/train_grpo.py --config SOME/FOLDER/own.yaml

with own.yaml saying `algorithm: {advantage: "own_algorithm:Estimator", loss_type: "own_algorithm:loss"}`. Everything
else stays: both engines, self-play, checkpoints, `--resume`. docs/your-algorithm.md compares it with what is built in.
"""

import torch

from codea1_env.training import advantages


class Estimator(advantages.Estimator):
    """REINFORCE++: normalised over the whole batch, so that a group which is paid alike teaches, too.

    The mean moves slowly, to show where memory goes: `state` and `restore` carry it through checkpoints.
    """

    mean, share = None, 0.9

    def advantages(self, rewards, rows):
        """(rows,) to (rows,). `rows[i].group`, `.question`, `.seat` say what row i is; nan: it has no score."""
        known = rewards[~rewards.isnan()]
        if not len(known):
            return torch.zeros_like(rewards)
        now = float(known.mean())
        self.mean = now if self.mean is None else self.share * self.mean + (1 - self.share) * now
        return (rewards - self.mean) / (known.std(correction=0) + 1e-4)

    def state(self):
        return {"mean": self.mean}

    def restore(self, state):
        self.mean = state["mean"]


def loss(batch):
    """The clipped policy gradient, a mean over all tokens, with the k2 estimate of the divergence from the base.

    Every tensor is (rows, tokens); `batch.arguments` has the numbers of the section `grpo`.
    """
    limits = batch.arguments
    ratio = (batch.logps - batch.old_logps).exp()
    clipped = ratio.clamp(1 - limits.epsilon, 1 + limits.epsilon_high)
    gain = (ratio * batch.advantages).minimum(clipped * batch.advantages)
    if limits.beta:
        gain = gain - limits.beta * 0.5 * (batch.logps - batch.ref_logps) ** 2
    return -(gain * batch.mask).sum() / batch.tokens
