"""The papers' tables, their status and pages: see ``python -m launch.reproduce --help``."""

import sys

from analysis.reproduction import command
from vfljax import cli

if __name__ == "__main__":
    cli.start(command, sys.argv[1:], "python -m launch.reproduce")
