"""The command ``vfljax data`` from a checkout: see ``python -m launch.data --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.data, sys.argv[1:], "python -m launch.data")
