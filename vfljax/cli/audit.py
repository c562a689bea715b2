r"""Audit a table of your own: what leaks, to whom, and what to switch on.

    vfljax audit --data=table.csv --label=default --workdir=runs/audit \
        --parties="bank: LIMIT_BAL, EDUCATION, AGE; telco: PAY_*, BILL_*"

Parties own columns by name or glob, "*" being the rest; --parties=FILE.json has them as {"bank": ["AGE"],
"telco": ["PAY_*"]}. The first party has the labels unless --label_party names another. Columns that no
party owns are left out. The audit trains the undefended federation and attacks it with every attack that
applies, tries every defense that applies, and audits each at the operating points around which it begins to
cost more than --keep_gain and --max_cost allow. Where --budget is short it leaves out seeds, attacks, the
choice of operating points and defenses, and says so. The same command again continues an audit that was
stopped or killed, and with a larger --budget it adds what was left out. The defense that it recommends was
chosen among several; --confirm judges it again, on seeds on which nothing was chosen, and keeps a share of
--budget for that. --canaries trains every defense that claims an epsilon once more, with coins as labels of
some rows, and puts a lower limit of epsilon beside the claim.

It writes report.html, the tables of a sweep (see vfljax sweep), and config.py, by which vfljax sweep makes the
same tables.
"""

from __future__ import annotations

import math
import pathlib
import resource
import sys
import time

from vfljax.cli.common import PROFILE, REQUIREMENTS, Flag, Options, requirement
from vfljax.errors import UserError, shown

RESUMES = True
FLAGS = (
    Flag("data", "the table's file: CSV or other delimited text, Parquet, .npz", path=True),
    Flag("label", "the column that holds the labels"),
    Flag("parties", "who owns which columns: 'bank: AGE; telco: PAY_*', or a .json", ""),
    Flag("workdir", "folder of the audit: new, or the one to continue", path=True),
    Flag("label_party", "who has the labels; the first party by default"),
    Flag("federation", "with a top model (split), without one (no_split), or both", "split"),
    Flag("attackers", "who attacks, each alone: telco,shop; default: all but the label party", []),
    Flag("known", "labels that attackers know; by default 40, or two a class", 0),
    Flag("budget", "how long it may take: 90s, 10m, 2h", "10m"),
    Flag(
        "max_leak",
        "the most that may leak, on the report's scale, such as 0.6; by default any",
        math.nan,
    ),
    Flag("max_cost", "the most test accuracy or AUC that a defense may cost; 1: any", 1.0),
    Flag("keep_gain", "the share of the gain over the label party alone that is to be kept", 0.5),
    Flag("seeds", "seeds of each configuration; by default 5, or 3 if time is short", 5),
    Flag("confirm", "judge what is recommended again, on three fresh seeds", False),
    Flag("canaries", "audit claimed epsilons with labels that are coins", False),
    Flag("option", "name=value of the table's loader, such as drop=ID; see vfljax data", []),
    Flag("options", 'a JSON object of options of pandas.read_csv: {"sep": ";"}', ""),
    *REQUIREMENTS,
    PROFILE,
)


def run(options: Options) -> None:
    """Run the audit that the flags ask for, and print its report."""
    from vfljax.auditing import request
    from vfljax.auditing.stages import audit
    from vfljax.report import page

    began = time.monotonic()
    require = requirement(options)
    folder = options.required("workdir", "the folder that the audit is written to")
    parties = request.parties_of(options.parties)
    texts = [*options.option, *([f"options={options.options}"] if options.options else [])]
    attackers = (name.strip() for names in options.attackers for name in names.split(","))
    asked = request.Request(
        data=options.data or "",
        parties=parties,
        label_party=next(iter(parties)) if options.label_party is None else options.label_party,
        attackers=tuple(filter(None, attackers)),
        budget=request.seconds_of(options.budget),
        max_leak=options.max_leak if options["max_leak"].present else None,
        fewest_seeds=0 if options["seeds"].present else 3,
        options=request.options_of(texts),
        **{name: getattr(options, name) for name in request.AS_GIVEN},
    )
    try:
        workdir = audit(asked, pathlib.Path(folder), options.line)
    except UserError as error:  # it names flags, as there is no config
        raise UserError(error.line(request.flag_of)) from error
    print(page.present(workdir))
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(f"config: {shown(workdir / 'config.py')} (`vfljax sweep` makes the same tables by it)")
    print(f"audit: {time.monotonic() - began:.0f} s, peak memory {peak / 1e9:.1f} GB")
    require(workdir)
