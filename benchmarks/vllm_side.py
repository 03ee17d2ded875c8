"""vLLM's side of rollouts.py, a program of its own since vLLM has an environment of its own (docs/cluster.md).

The first line that comes in is what to sample, in JSON; every further line asks to sample it once, and the answer is a
line with the CPU-seconds that it took. What vLLM itself prints goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

# The engine runs in this process, whose clock counts it, on one thread and with room for 64 rows.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()  # none
    try:
        asked = json.loads(sys.stdin.readline())
    except ValueError as error:
        parser.error(f"the first line of the input must be what to sample, in JSON, got: {error}")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        import torch
        import vllm
    except ImportError as error:
        parser.error(f"this interpreter must have vLLM (docs/cluster.md), got: {error}")

    torch.set_num_threads(1)
    engine = vllm.LLM(
        model=asked["model"],
        dtype=asked["dtype"],
        max_model_len=asked["prompt_tokens"] + asked["tokens"] + 16,
        max_num_seqs=asked["samples"] * len(asked["prompts"]),
        enforce_eager=True,
        generation_config="vllm",
    )
    sampling = vllm.SamplingParams(n=asked["samples"], temperature=1.0, max_tokens=asked["tokens"], ignore_eos=True)
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        engine.reset_prefix_cache()  # each time it reads the prompts itself, once for all samples of one
        start = time.process_time()
        made = engine.generate([{"prompt_token_ids": prompt} for prompt in asked["prompts"]], sampling, use_tqdm=False)
        spent = time.process_time() - start
        lengths = {len(one.token_ids) for request in made for one in request.outputs}
        if lengths != {asked["tokens"]}:
            raise SystemExit(f"every answer must have {asked['tokens']} tokens, got lengths {sorted(lengths)}")
        print(spent, file=answers, flush=True)


if __name__ == "__main__":
    main()
