r"""Audit a table of your own: what leaks, to whom, and what to switch on.

    python -m launch.audit --data=table.csv --label=default --workdir=runs/audit \
        --parties="bank: LIMIT_BAL, EDUCATION, AGE; telco: PAY_*, BILL_*"

Parties own columns by name or glob, "*" being the rest; --parties=FILE.json has them as
{"bank": ["AGE"], "telco": ["PAY_*"]}. The first party has the labels unless --label_party names another.
Columns that nobody owns are left out. The audit trains the undefended federation and attacks it with every
attack that applies, tries every defense that applies, and audits each at the strengths around which it begins
to cost more than --max_cost. The same command again continues an audit that was stopped or killed.

What is written: report.html, the tables of a sweep (see launch.sweep), and config.py, which launch.sweep runs
to the same tables.
"""

from __future__ import annotations

import math
import pathlib
import resource
import sys
import time

from absl import flags

from launch import common
from vfljax.errors import UserError

_DATA = flags.DEFINE_string(
    "data", None, "the table's file: CSV or other delimited text, Parquet, .npz"
)
_LABEL = flags.DEFINE_string("label", None, "the column that holds the labels")
_PARTIES = flags.DEFINE_string(
    "parties", "", "who owns which columns: 'bank: AGE; telco: PAY_*', or a .json"
)
_WORKDIR = flags.DEFINE_string("workdir", None, "folder of the audit: new, or the one to continue")
_LABEL_PARTY = flags.DEFINE_string(
    "label_party", None, "who has the labels; the first party by default"
)
_FEDERATION = flags.DEFINE_enum(
    "federation",
    "split",
    ["split", "no_split", "both"],
    "with a top model at the label party (split), without one, or both",
)
_ATTACKERS = flags.DEFINE_multi_string(
    "attackers", [], "who attacks, each alone: telco,shop; by default all but the label party"
)
_KNOWN = flags.DEFINE_integer(
    "known", 0, "labels that attackers know; by default 40, or two a class"
)
_BUDGET = flags.DEFINE_string("budget", "10m", "how long it may take: 90s, 10m, 2h")
_MAX_LEAK = flags.DEFINE_float(
    "max_leak",
    None,
    "the most that may leak, on the report's scale, such as 0.6; by default any, and verdicts decide",
)
_MAX_COST = flags.DEFINE_float("max_cost", 0.02, "the most test accuracy that a defense may cost")
_SEEDS = flags.DEFINE_integer(
    "seeds", 5, "seeds of each setting; verdicts need 3, and more make them sharper"
)
_OPTION = flags.DEFINE_multi_string(
    "option",
    [],
    "name=value of the table's loader, such as drop=ID or categorical=SEX,JOB; see launch.data",
)


def run() -> None:
    from vfljax.auditing import request
    from vfljax.auditing.stages import audit
    from vfljax.machine import bytes_text
    from vfljax.report import page

    began = time.monotonic()
    if not _WORKDIR.value:
        raise UserError("--workdir is needed: the folder that the audit is written to.")
    parties = request.parties_of(_PARTIES.value)
    asked = request.Request(
        data=_DATA.value or "",
        label=_LABEL.value or "",
        parties=parties,
        label_party=next(iter(parties)) if _LABEL_PARTY.value is None else _LABEL_PARTY.value,
        federation=_FEDERATION.value,
        attackers=tuple(
            filter(None, (n.strip() for one in _ATTACKERS.value for n in one.split(",")))
        ),
        known=_KNOWN.value,
        budget=request.seconds_of(_BUDGET.value),
        max_leak=math.nan if _MAX_LEAK.value is None else _limit(_MAX_LEAK.value),
        max_cost=_MAX_COST.value,
        seeds=_SEEDS.value,
        options=request.options_of(_OPTION.value),
    )
    try:
        workdir = audit(asked, pathlib.Path(_WORKDIR.value), common.command())
    except UserError as error:  # there is no config that it could name fields of
        raise UserError(error.line(request.flag_of)) from error
    print(page.present(workdir))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
    print(f"config: {workdir / 'config.py'} (launch.sweep runs it to the same tables)")
    print(f"audit: {time.monotonic() - began:.0f} s, peak memory {bytes_text(peak)}")


def _limit(value: float) -> float:
    if math.isnan(value):
        raise UserError("--max_leak=nan: give a number from 0 to 1.")
    return value


if __name__ == "__main__":
    common.start(run, resumes=True)
