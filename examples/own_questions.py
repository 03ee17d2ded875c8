"""A choice of questions of your own: the round asks those first that the coder has failed for the longest time.

    python agents/train_grpo.py --preset smoke --config examples/own_questions.yaml

with own_questions.yaml saying `algorithm: {questions: "own_questions:Overdue", questions_args: {passed: 0.5}}`.
"""

from codea1_env.training.round.questions import Chooser

NEVER = 1 << 30


class Overdue(Chooser):
    """A question is overdue from the round on in which its programs earned less than `passed`, on average."""

    def __init__(self, problems, seed, passed=0.5):
        super().__init__(problems, seed)
        self.passed, self.rounds, self.since, self.asked = passed, 0, {}, {}

    def choose(self, round_index, count):
        """Places of `count` different problems: overdue ones, then new ones, then those asked the longest ago."""
        names = [problem.problem_id for problem in self.problems]
        due = [self.since.get(name, NEVER + self.asked.get(name, 0)) for name in names]
        return sorted(range(len(due)), key=due.__getitem__)[:count]

    def learn(self, passed):
        """By problem_id, the mean reward of the coder's programs in the round that has ended."""
        self.rounds += 1
        for name, reward in passed.items():
            self.asked[name] = self.rounds
            if reward < self.passed:
                self.since.setdefault(name, self.rounds)
            else:
                self.since.pop(name, None)

    def state(self):
        return {"rounds": self.rounds, "since": self.since, "asked": self.asked}

    def restore(self, state):
        self.rounds, self.since, self.asked = state["rounds"], state["since"], state["asked"]
