"""The command ``vfljax benchmark`` from a checkout: see ``python -m launch.benchmark --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start("benchmark", sys.argv[1:])
