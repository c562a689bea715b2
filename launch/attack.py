"""The command ``vfljax attack`` from a checkout: see ``python -m launch.attack --help``."""

import sys

from vfljax.api.commands import COMMANDS
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMANDS["attack"], sys.argv[1:], "python -m launch.attack")
