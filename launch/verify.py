"""The command ``vfljax verify`` from a checkout: see ``python -m launch.verify --help``."""

import sys

from vfljax.api.commands import COMMANDS
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMANDS["verify"], sys.argv[1:], "python -m launch.verify")
