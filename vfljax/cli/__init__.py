"""The console command ``vfljax``, whose subcommands ``python -m launch.NAME`` runs from a checkout.

A command is a module with ``FLAGS``, ``run``, ``RESUMES`` (whether the same command line continues what was
stopped), and a docstring, which is its help.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import NoReturn

from vfljax.cli import attack, audit, common, data, report, reproduce, sweep, verify
from vfljax.cli.common import start
from vfljax.errors import unknown

COMMANDS: dict[str, ModuleType] = {
    "sweep": sweep,
    "attack": attack,
    "audit": audit,
    "report": report,
    "data": data,
    "reproduce": reproduce,
    "verify": verify,
}

USAGE = """Measure label leakage in vertical federated learning, and what defenses against it cost.

    vfljax COMMAND --FLAG=VALUE ...
    vfljax COMMAND --help
    vfljax --version

{commands}
"""


def console() -> NoReturn:
    """Run the installed command ``vfljax``."""
    sys.path.insert(0, os.getcwd())  # as ``python -m`` does, for plugins and configs of this folder
    name, *rest = sys.argv[1:] or ["--help"]
    if name in COMMANDS:
        start(COMMANDS[name], rest, f"vfljax {name}")
    if common.HELP.fullmatch(name):
        heads = {n: (module.__doc__ or "").splitlines()[0] for n, module in COMMANDS.items()}
        lines = [f"{known:10s} {head}" for known, head in heads.items()]
        common.end_with_help(USAGE.format(commands="\n".join(lines)))
    if name == "--version":
        from vfljax import __version__

        print(__version__)
        sys.exit(0)
    sys.exit(common.fail(unknown("command", name, COMMANDS)))
