"""The command ``vfljax sweep`` from a checkout: see ``python -m launch.sweep --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.sweep, sys.argv[1:], "python -m launch.sweep")
