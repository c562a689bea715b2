"""The console command ``vfljax``, whose subcommands ``python -m launch.NAME`` runs from a checkout."""

from __future__ import annotations

import contextlib
import inspect
import os
import resource
import sys
import time
from typing import Any, NoReturn

from vfljax.api import attack, console, sweep
from vfljax.api.audit import audit as audited
from vfljax.api.audit import audit_trees, goal_of
from vfljax.api.console import profiled
from vfljax.api.data import data
from vfljax.api.flags import Command, refuse_others, taken
from vfljax.api.partitioned_table import partitioned_table
from vfljax.api.report import report, requirement
from vfljax.api.verify import verify
from vfljax.errors import argument, unknown


def audit(*, trees: bool = False, **options: Any) -> None:
    r"""Audit a table of your own: what leaks, to whom, and what to switch on.

        vfljax audit --data=table.csv --label=default --workdir=runs/audit \
            --parties="bank: LIMIT_BAL, EDUCATION, AGE; telco: PAY_*, BILL_*"

    Parties own columns by name or glob, "*" being the rest; --parties=FILE.json has them as {"bank": ["AGE"],
    "telco": ["PAY_*"]}. The first party has the labels unless --label_party names another. Columns that no
    party owns are left out. The audit is one sweep: the undefended federation on all seeds, under every attack
    that applies; then every defense that applies at the middle strength of its row, on three seeds, those with
    a formal guarantee first; then their first and last strengths; then all of them on the other seeds. When
    --budget is spent nothing more is begun, and the report says what was not reached. The same command again
    goes on, for another --budget; so it does with more seeds or attackers, and trains nothing twice. The
    defense that it recommends was chosen among several: --confirm judges it again, on seeds on which nothing
    was chosen. --canaries trains every defense that claims an epsilon once more, with coins as labels of some
    rows, and puts a lower bound of epsilon beside the claim. --controls trains undefended and what is
    switched on, on permuted labels, which tells what has come through the federation from what the columns
    tell. All three come after --budget and have no limit of time.

    With --trees it audits boosted trees in place of networks, under the defenses of configs/trees.py: the
    first trees by the label party alone, heavier nodes, randomized labels, and fewer levels. Of networks alone
    are --federation, --first_seed, --confirm, --canaries and --controls.

    It writes report.html, the tables of a sweep (see vfljax sweep), and, of networks, config.py, by which
    vfljax sweep makes the same tables.

    Args:
      trees: audit boosted trees in place of networks, such as those of SecureBoost (extra trees).
    """
    began = time.monotonic()
    if options.get("data"):
        print(f"auditing {options['data']}", flush=True)  # before imports, which take seconds
    require = requirement(**taken(requirement, options))
    goal = goal_of(**taken(goal_of, options))
    of_table = taken(partitioned_table, options)
    run = audit_trees if trees else audited
    given = taken(run, options)
    if trees:
        remedy = ("leave it out, or leave ", argument("trees"), " out")
        refuse_others(audited, options, "networks", remedy)
    else:
        remedy = ("leave it out, or give ", argument("trees"))
        refuse_others(audit_trees, options, "trees", remedy)
    workdir = run(partitioned_table(**of_table), goal=goal, **given).workdir
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(f"audit: {time.monotonic() - began:.0f} s, peak memory {peak / 1e9:.1f} GB")
    require(workdir)


AUDITING = (partitioned_table, audited, audit_trees, goal_of, requirement, profiled)
COMMANDS = {
    "sweep": Command(sweep.command, (sweep.run_sweep, requirement, profiled), resumes=True),
    "attack": Command(attack.command, (attack.attack, attack.attack_wire, profiled), resumes=True),
    "audit": Command(audit, AUDITING, resumes=True),
    "report": Command(report),
    "data": Command(data),
    "verify": Command(verify),
}

USAGE = """Measure label leakage in vertical federated learning, and what defenses against it cost.

    vfljax COMMAND --FLAG=VALUE ...
    vfljax COMMAND --help
    vfljax --version

{commands}
"""


def main() -> NoReturn:
    """Runs the installed command ``vfljax``."""
    if not sys.flags.safe_path:
        with contextlib.suppress(OSError):  # the current folder was removed
            sys.path.insert(
                0, os.getcwd()
            )  # as ``python -m`` does, for plugins and configs of this folder
    name, *rest = sys.argv[1:] or ["--help"]
    if name in COMMANDS:
        console.start(COMMANDS[name], rest, f"vfljax {name}")
    if console.HELP.fullmatch(name):
        heads = {n: (inspect.getdoc(of.run) or "").partition("\n")[0] for n, of in COMMANDS.items()}
        lines = [f"{known:10s} {head}" for known, head in heads.items()]
        console.end_with_help(USAGE.format(commands="\n".join(lines)))
    if name == "--version":
        from vfljax import __version__

        print(__version__)
        sys.exit(0)
    sys.exit(console.fail(unknown("command", name, COMMANDS)))
