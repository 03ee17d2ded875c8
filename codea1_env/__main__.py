"""`python -m codea1_env` is the command `codea1`."""

import sys

from codea1_env.cli import main

if __name__ == "__main__":
    sys.exit(main())
