"""Small pretrained language models on CPUs: sampled and learnt from with one frozen base and low-rank adapters."""
