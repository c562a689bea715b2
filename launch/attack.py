"""The command ``vfljax attack`` from a checkout: see ``python -m launch.attack --help``."""

import sys

from vfljax import cli

if __name__ == "__main__":
    cli.start(cli.attack, sys.argv[1:], "python -m launch.attack")
