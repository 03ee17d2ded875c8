"""Games and recorded outputs as JSON lines: read, written, replayed, and scored in a stream; and addresses for runs."""
