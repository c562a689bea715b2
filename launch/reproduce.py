"""The papers' tables, their status and pages: see ``python -m launch.reproduce --help``."""

import sys

from analysis.reproduction import command
from vfljax.api.console import start

if __name__ == "__main__":
    start(command.COMMAND, sys.argv[1:], "python -m launch.reproduce")
