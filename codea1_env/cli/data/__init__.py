"""The command `codea1 data`: problem files, from public sets or from families, checked and chosen from."""

from codea1_env.cli.data.files import add_data

__all__ = ["add_data"]
