"""A model plays both seats of the duel as an environment of verifiers.

pip install '.[verifiers]' examples/codea1_duel
python examples/verifiers_duel.py http://localhost:8000/v1 MODEL    # any OpenAI-compatible server

The seats may have models of their own: `DuelConfig(coder=vf.AgentConfig(model=...), ...)`. The key is OPENAI_API_KEY.
"""

import asyncio
import sys

from codea1_env.extras import for_script

with for_script("verifiers"):
    import verifiers.v1 as vf

    from codea1_env.adapters.verifiers import DuelConfig, DuelEnv, DuelTasksetConfig


async def main(url: str, model: str) -> None:
    context = vf.ModelContext(model, vf.EvalClientConfig(base_url=url, api_key_var="OPENAI_API_KEY"))
    duel = DuelEnv(DuelConfig(taskset=DuelTasksetConfig(id="codea1-duel")))
    async with duel.serving():
        for task in duel.taskset.take(3):
            episode = await duel.run_episode(task, context)
            print(task.data.problem_id, {trace.agent.name: round(trace.reward, 3) for trace in episode.traces})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python examples/verifiers_duel.py URL MODEL")
    asyncio.run(main(*sys.argv[1:]))
