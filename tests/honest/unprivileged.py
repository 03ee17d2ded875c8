"""Plays a quarter of the corpus as an ordinary user: run by root as a process of its own. Writes
[[kind, name, what differs], ...], or {"skip": why}."""

from __future__ import annotations

import json

from attacks.samples import some_of_each_kind
from attacks.unprivileged import become_nobody

from codea1_env.sandbox import LocalSandbox
from honest.corpus import read_corpus
from honest.judging import differing, judged


def main() -> None:
    programs = some_of_each_kind([honest for honest in read_corpus() if not honest.missing])
    claimed = [["pass", *["fail"] * len(honest.wrong)] for honest in programs]
    why_not = become_nobody()
    if why_not:
        print(json.dumps({"skip": why_not}))
        return
    with LocalSandbox() as sandbox:
        differ = differing(judged(sandbox, programs, claimed))
    print(json.dumps([[kind, name, what] for (kind, name), what in differ.items()]))


if __name__ == "__main__":
    main()
