"""The command ``vfljax sweep`` from a checkout: see ``python -m launch.sweep --help``."""

import sys

from vfljax.api.commands import COMMANDS
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMANDS["sweep"], sys.argv[1:], "python -m launch.sweep")
