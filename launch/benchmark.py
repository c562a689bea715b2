"""Measure what a trial costs: see ``python -m launch.benchmark --help``."""

import sys

from analysis.benchmark import command
from vfljax.api.console import start

if __name__ == "__main__":
    start(command.COMMAND, sys.argv[1:], "python -m launch.benchmark")
