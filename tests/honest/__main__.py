"""`python tests/honest [kind ...]`: the table of agreement by kind, and every program that differs.

`--differing` writes `differing.txt` anew: what differs here and now, each with the reason that stands there already or
with what happens; and the table of `docs/sandbox.md`. `--backend` takes local, docker or ray.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:1] = [str(Path(__file__).parents[1])]
    from codea1_env.sandbox import open_sandbox
    from honest.corpus import PAGE, PLACE, page_table, read_corpus, read_differing
    from honest.judging import differing, judged, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", metavar="kind", nargs="*")
    parser.add_argument("--backend", default="local")
    parser.add_argument("--differing", action="store_true")
    options = parser.parse_args()
    corpus = read_corpus()
    chosen = [honest for honest in corpus if not options.kinds or honest.kind in options.kinds]
    with open_sandbox(options.backend, 2) as sandbox:
        every = list(judged(sandbox, [honest for honest in chosen if not honest.missing]))
    print("| kind | right programs | judged alike | wrong programs | judged alike |\n|---|---:|---:|---:|---:|")
    for row in table(every):
        print("| " + " | ".join(map(str, row)) + " |")
    for honest in chosen:
        if honest.missing:
            print(f"not run: {honest.kind} / {honest.name}: not installed: {', '.join(honest.missing)}")
    for one in every:
        if not one.agrees:
            print(f"{one.honest.kind} / {one.name}\n    plain: {one.plain}\n    here:  {one.here}")
    if options.differing and options.backend == "local":
        known = read_differing()
        asked = {(one.honest.kind, one.honest.name) for one in every}
        now = {key: reason for key, reason in known.items() if key not in asked}  # what was not run stays
        now |= {key: known.get(key, f"not yet: {what}") for key, what in differing(every).items()}
        lines = (PLACE / "differing.txt").read_text(encoding="utf-8").splitlines()
        head = [line for line in lines if line.startswith("#")]
        elsewhere = [line for line in lines if ": not yet (" in line]  # of one other backend
        order = {(honest.kind, honest.name): place for place, honest in enumerate(corpus)}
        body = [f"{kind} / {name}: {now[kind, name]}" for kind, name in sorted(now, key=order.__getitem__)]
        (PLACE / "differing.txt").write_text("\n".join([*head, *body, *elsewhere]) + "\n", encoding="utf-8")
        before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- honest -->\n")
        after = rest.partition("<!-- /honest -->\n")[2]
        table_text = f"<!-- honest -->\n{page_table()}<!-- /honest -->\n"
        PAGE.write_text(before + table_text + after, encoding="utf-8")
