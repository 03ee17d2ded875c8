"""Turns recorded HumanEval completions into input for `codea1 score`.

    python benchmarks/convert_recorded.py RECORDED.jsonl.gz OUT.jsonl [--programs 100] [--suites 8]

The recorded file has one question a line: question, entry_point, reference_solution, codes, suites. Its suites continue
a prompt that ends in `assert `, so most have a line break right after `assert`: the two lines are joined. Of each
question's suites only those that then hold a test of the entry point are used; program i meets `--suites` of them,
beginning at suite number i * suites, around the end.
"""

import argparse
import gzip
import json
import re
from pathlib import Path

from codea1_env.terminal import Parser


def joined(suite: str) -> str:
    """The suite with every lonely `assert` joined to the line that follows it."""
    return re.sub(r"^assert[ \t]*\n[ \t]*", "assert ", suite, flags=re.MULTILINE)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path, help="recorded completions, gzipped JSON lines")
    parser.add_argument("output", type=Path, help="input for codea1 score")
    parser.add_argument("--programs", type=int, default=100, help="programs per question (default: 100, all)")
    parser.add_argument("--suites", type=int, default=8, help="suites per program (default: 8)")
    options = parser.parse_args()
    with gzip.open(options.recorded, "rt", encoding="utf-8") as source, open(options.output, "w") as target:
        for line in source:
            record = json.loads(line)
            test = re.compile(rf"^assert\s+{re.escape(record['entry_point'])}\(.*==", re.MULTILINE)
            suites = [text for text in map(joined, record["suites"]) if test.search(text)]
            codes = record["codes"][: options.programs]
            chosen = [
                [suites[(i * options.suites + j) % len(suites)] for j in range(options.suites)] if suites else []
                for i in range(len(codes))
            ]
            fields = {name: record[name] for name in ("question", "entry_point", "reference_solution")}
            target.write(
                json.dumps({"problem_id": record["task_id"], **fields, "codes": codes, "suites": chosen}) + "\n"
            )


if __name__ == "__main__":
    main()
