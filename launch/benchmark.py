"""Measure what a trial costs: see ``python -m launch.benchmark --help``."""

import sys

from analysis.benchmark import command
from vfljax import cli

if __name__ == "__main__":
    cli.start(command, sys.argv[1:], "python -m launch.benchmark")
