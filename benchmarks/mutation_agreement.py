"""Do our mutants, and what kills them, agree with cosmic-ray's? A table by operator, with what differs.

    python -m venv .cosmic && .cosmic/bin/pip install cosmic-ray
    python benchmarks/mutation_agreement.py --peers .cosmic/bin/python [--functions 12] [--timeout 10]

For a sample of the bundled references, spread evenly. Same mutants: programs that are equal once both are parsed and
written out again, for the operators that both have; ours are made with `endless=True`, for cosmic-ray leaves no loop
out. Same verdicts: every mutant that both make, on the problem's golden and hidden tests; cosmic-ray's verdict is its
own `cosmic_ray.testing.run_tests` on a script of the same asserts, ours the judge's.
"""

import argparse
import ast
import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codea1_env.judging.judge import Expectation, Judge, Trial
from codea1_env.problems import Problem, bundled_problems
from codea1_env.reading.grammar import read_case
from codea1_env.reading.programs.mutants import mutants
from codea1_env.rewards.duel import Verdict
from codea1_env.sandbox import open_sandbox
from codea1_env.terminal import Parser

FAMILIES = {
    "ReplaceComparisonOperator": "relational",
    "ReplaceBinaryOperator": "arithmetic",
    "ReplaceUnaryOperator_USub_UAdd": "arithmetic",
    "ReplaceAndWithOr": "logical",
    "ReplaceOrWithAnd": "logical",
    "NumberReplacer": "constant",
    "ReplaceTrueWithFalse": "constant",
    "ReplaceFalseWithTrue": "constant",
    "AddNot": "negated-condition",
    "ReplaceBreakWithContinue": "break-continue",
    "ReplaceContinueWithBreak": "break-continue",
    "ZeroIterationForLoop": "zero-iterations",
}
"""cosmic-ray's operators (by the beginning of their names), and what they are called here."""

PEER = """
import json, pathlib, sys
import cosmic_ray.plugins as plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.testing import run_tests
job = json.load(sys.stdin)
module = pathlib.Path(job["directory"], "module.py")
if job["what"] == "make":
    found = []
    for name in sorted(plugins.operator_names()):
        family = next((own for start, own in job["families"].items() if name.split("/")[1].startswith(start)), None)
        occurrence = 0
        while family is not None:
            mutated = mutate_code(job["source"], plugins.get_operator(name)(), occurrence)
            if mutated is None:
                break
            found.append([family, mutated])
            occurrence += 1
    print(json.dumps(found))
else:
    verdicts = []
    for source in job["sources"]:
        module.write_text(source)
        outcome, _ = run_tests(f"{sys.executable} -B {job['directory']}/script.py", job["timeout"])
        verdicts.append(outcome.value)
    print(json.dumps(verdicts))
"""


def ask(peers: Path, **job: Any) -> Any:
    done = subprocess.run([str(peers), "-c", PEER], input=json.dumps(job), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def normal(source: str) -> str | None:
    """The program as its syntax tree writes it; None where it does not parse."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.List) and not node.iter.elts:
            node.iter = ast.Tuple([])  # cosmic-ray's loop over nothing
    return ast.unparse(ast.parse(ast.unparse(tree)))


def killed_here(judge: Judge, problem: Problem, sources: list[str]) -> list[bool]:
    cases = [*problem.golden_tests, *problem.hidden_tests]
    (stated,) = judge.evaluate([[read_case(case, problem.entry_point) for case in cases]])
    expected = tuple(each for each in stated if isinstance(each, Expectation))
    results = judge.try_programs([Trial(problem, source, expected) for source in sources])
    return [any(verdict is not Verdict.PASS for verdict in result.verdicts) for result in results]


def killed_there(peers: Path, problem: Problem, sources: list[str], timeout_s: float) -> list[bool]:
    tests = "\n".join(str(case) for case in (*problem.golden_tests, *problem.hidden_tests))
    with TemporaryDirectory() as directory:
        Path(directory, "script.py").write_text(f"from module import *\n{tests}\n")
        verdicts = ask(peers, what="run", directory=directory, sources=sources, timeout=timeout_s)
    return [verdict != "survived" for verdict in verdicts]


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, help="a Python with cosmic-ray")
    parser.add_argument("--functions", type=int, default=12, help="bundled references (default: 12)")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds that cosmic-ray gives a run (default: 10)")
    options = parser.parse_args()
    problems = bundled_problems()
    problems = [problems[place * len(problems) // options.functions] for place in range(options.functions)]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    verdicts: Counter[tuple[bool, bool]] = Counter()
    examples: dict[str, str] = {}
    with open_sandbox() as sandbox:
        judge = Judge(sandbox)
        for problem in problems:
            source = problem.reference_solution or ""
            made = ask(options.peers, what="make", source=source, directory=".", families=FAMILIES)
            theirs: dict[str, str] = {}
            for family, mutated in made:
                written = normal(mutated)
                if written is None or written == normal(source):
                    counts[family]["theirs, no mutant"] += 1
                else:
                    theirs.setdefault(written, family)
            ours = {normal(m.source): m.operator for m in mutants(source, endless=True)}
            ours = {text: name for text, name in ours.items() if text and name in FAMILIES.values()}
            for text in {*theirs, *ours}:
                kind = "both" if text in theirs and text in ours else "theirs" if text in theirs else "ours"
                family = ours.get(text) or theirs[text]
                counts[family][kind] += 1
                if kind != "both":
                    examples.setdefault(f"{family}, {kind} only", difference(normal(source) or "", text))
            common = sorted(text for text in ours if text in theirs)
            pairs = zip(killed_here(judge, problem, common), killed_there(options.peers, problem, common,
                                                                          options.timeout), strict=True)  # fmt: skip
            for text, pair in zip(common, pairs, strict=True):
                verdicts[pair] += 1
                if pair[0] != pair[1]:
                    print(f"{problem.problem_id}: killed here {pair[0]}, there {pair[1]}:",
                          difference(normal(source) or "", text))  # fmt: skip
    print("| operator | both make | only cosmic-ray | only ours | cosmic-ray's that are no other program |")
    print("|---|---|---|---|---|")
    for family, count in sorted(counts.items()):
        print(f"| {family} | {count['both']} | {count['theirs']} | {count['ours']} | {count['theirs, no mutant']} |")
    killed, alive = verdicts[True, True], verdicts[False, False]
    print(f"\n{len(problems)} functions. Of {sum(verdicts.values())} common mutants the tests kill {killed} on both "
          f"sides and {alive} on neither: {killed + alive} verdicts agree.")  # fmt: skip
    for what, example in sorted(examples.items()):
        print(f"- {what}, e.g. {example}")


def difference(before: str, after: str) -> str:
    """The first line that was changed."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(
        (f"`{one.strip()}` -> `{other.strip()}`" for one, other in pairs if one != other), "a line more or less"
    )


if __name__ == "__main__":
    main()
