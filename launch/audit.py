"""The command ``vfljax audit`` from a checkout: see ``python -m launch.audit --help``."""

import sys

from vfljax.api.commands import COMMANDS
from vfljax.api.console import start

if __name__ == "__main__":
    start(COMMANDS["audit"], sys.argv[1:], "python -m launch.audit")
