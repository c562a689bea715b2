"""The command ``vfljax data`` from a checkout: see ``python -m launch.data --help``."""

import sys

from vfljax.api.commands import COMMANDS
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMANDS["data"], sys.argv[1:], "python -m launch.data")
