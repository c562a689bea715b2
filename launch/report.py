"""The command ``vfljax report`` from a checkout: see ``python -m launch.report --help``."""

import sys

from vfljax.api.commands import COMMANDS
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMANDS["report"], sys.argv[1:], "python -m launch.report")
