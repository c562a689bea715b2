"""The command ``vfljax reproduce`` from a checkout: see ``python -m launch.reproduce --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.reproduce, sys.argv[1:], "python -m launch.reproduce")
