"""The command `codea1`: one module a command, and what all of them share."""

from codea1_env.cli.command_line import main

__all__ = ["main"]
