"""Both seats as GRPO trainers, one model in both seats, past opponents, and vLLM beside a trainer."""
