r"""Audit a table of your own: what leaks, to whom, and what to switch on.

    vfljax audit --data=table.csv --label=default --workdir=runs/audit \
        --parties="bank: LIMIT_BAL, EDUCATION, AGE; telco: PAY_*, BILL_*"

Parties own columns by name or glob, "*" being the rest; --parties=FILE.json has them as {"bank": ["AGE"],
"telco": ["PAY_*"]}. The first party has the labels unless --label_party names another. Columns that no
party owns are left out. The audit is one sweep: the undefended federation on all seeds, under every attack that
applies; then every defense that applies at the middle strength of its row, on three seeds, those with a formal
guarantee first; then their first and last strengths; then all of them on the other seeds. When --budget is
spent nothing more is begun, and the report says what was not reached. The same command again goes on, for
another --budget; so it does with more seeds or attackers, and trains nothing twice. The defense that it
recommends was chosen among several: --confirm judges it again, on seeds on which nothing was chosen. --canaries
trains every defense that claims an epsilon once more, with coins as labels of some rows, and puts a lower limit
of epsilon beside the claim. Both come after --budget and have no limit of time.

It writes report.html, the tables of a sweep (see vfljax sweep), and config.py, by which vfljax sweep makes the
same tables.
"""

from __future__ import annotations

import math
import resource
import sys
import time

from vfljax.cli.common import LAUNCHER, PROFILE, REQUIREMENTS, Flag, Options, requirement
from vfljax.errors import Field, UserError

RESUMES = True
ARGUMENTS = (
    *("label", "parties", "label_party", "federation", "attackers", "known", "budget"),
    *("max_cost", "keep_gain", "seeds", "confirm", "canaries"),
)
"""The flags that are passed on as they are given."""
FLAGS = (
    Flag("data", "the table's file: CSV or other delimited text, Parquet, .npz", path=True),
    Flag("label", "the column that holds the labels"),
    Flag("parties", "who owns which columns: 'bank: AGE; telco: PAY_*', or a .json", ""),
    Flag("workdir", "folder of the audit: new, or the one to continue", path=True),
    Flag("label_party", "who has the labels; the first party by default"),
    Flag("federation", "with a top model (split), without one (no_split), or both", "split"),
    Flag("attackers", "who attacks, each alone: telco,shop; default: all but the label party", ""),
    Flag("known", "labels that attackers know; by default 40, or two a class", 0),
    Flag("budget", "how long it may take: 90s, 10m, 1h30m; 0: without a limit", "10m"),
    Flag(
        "max_leak",
        "the most that may leak, on the report's scale, such as 0.6; by default any",
        math.nan,
    ),
    Flag("max_cost", "the most test accuracy or AUC that a defense may cost; 1: any", 1.0),
    Flag("keep_gain", "the share of the gain over the label party alone that is to be kept", 0.5),
    Flag("seeds", "seeds of each configuration; verdicts need 3", 5),
    Flag("confirm", "judge what is recommended again, on three fresh seeds", False),
    Flag("canaries", "audit claimed epsilons with labels that are coins", False),
    Flag("option", "name=value of the table's loader, such as drop=ID; see vfljax data", []),
    Flag("options", 'a JSON object of options of pandas.read_csv: {"sep": ";"}', ""),
    *REQUIREMENTS,
    LAUNCHER[0],  # --plugin
    PROFILE,
)


def run(options: Options) -> None:
    """Run the audit that the flags ask for, and print its report."""
    print(f"auditing {options.data}", flush=True)  # before imports, which take seconds
    from vfljax.api.audit import audit
    from vfljax.datasets import TABLE
    from vfljax.datasets import options as loader_options

    began = time.monotonic()
    require = requirement(options)
    texts = [*options.option, *([f"options={options.options}"] if options.options else [])]
    workdir = options.required("workdir", "the folder that the audit is written to")
    try:
        sweep = audit(
            options.data,
            workdir=workdir,
            max_leak=options.max_leak if options["max_leak"].present else None,
            options=loader_options.of_flags(texts, loader_options.of(TABLE["table"])),
            command=options.line,
            say=lambda line: print(line, flush=True),
            **{name: getattr(options, name) for name in ARGUMENTS},
        )
    except UserError as error:
        raise UserError(error.line(flag_of)) from error
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(f"audit: {time.monotonic() - began:.0f} s, peak memory {peak / 1e9:.1f} GB")
    require(sweep.workdir)


def flag_of(field: Field) -> str:
    """Returns the flag of an argument of ``vfljax.audit``, for messages.

    >>> flag_of(Field("audit.label")), flag_of(Field("audit.options.drop", "drop"))
    ('--label', '--option=drop')
    """
    group, _, name = field.path.rpartition(".")
    if group == "audit.options":
        return f"--option={name}"
    named = {"table": "data", "options": "option"}
    return f"--{named.get(name, name)}" if group == "audit" else str(field)
