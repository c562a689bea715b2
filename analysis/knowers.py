"""What attacks that know a defense read of planted labels, beside what all others read.

    python -m analysis.knowers WORKDIR --out=analysis/results/knowers

WORKDIR is a finished sweep of configs/knowers.py. ``tables.md`` has a line for each configuration: in each
federation the highest leak of the attacks that ``DefenseRow.known_by`` names for its defenses, with the attack,
and the highest of all other attacks. The report's own tables hold every attack.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterable

from vfljax import defenses, store
from vfljax.report import stored_rows, tables
from vfljax.report.configurations import configurations
from vfljax.types import NO_SPLIT, SPLIT

LEAK = "leak_crossed"


def highest(rows: Iterable[stored_rows.AttackFigures]) -> tuple[float, str]:
    """The highest leak of these rows, and the attack's label."""
    found = [(row.figures[LEAK], row.identity.label) for row in rows]
    return max(((leak, label) for leak, label in found if leak is not None), default=(0.0, ""))


def text(workdir: pathlib.Path) -> str:
    """The table, as Markdown."""
    rows = stored_rows.load(workdir)
    header = ["configuration"]
    for title in ("split", "no split"):
        header += [f"{title}: who knows it", "others"]
    body = []
    for c in configurations(rows):
        line = [c.label]
        for kind in (SPLIT, NO_SPLIT):
            trials = {
                t.trial
                for t in rows.trials
                if (t.configuration, t.federation) == (c.number, kind) and not t.diverged
            }
            attacks = [row for row in rows.attacks if row.trial in trials and not row.oracle]
            every = [defenses.TABLE[name] for name in c.defenses]
            knowing = [
                row for row in attacks if any(r.known_to(kind, [row.identity]) for r in every)
            ]
            other = [row for row in attacks if row not in knowing]
            shown = (highest(found) for found in (knowing if every else attacks, other))
            (leak, label), (rest, _) = shown
            line.append(f"{leak:.3f} {label}".removeprefix("0") if label else "-")
            line.append(f"{rest:.3f}".removeprefix("0") if rest and every else "-")
        body.append(line)
    return "\n".join(tables.markdown(header, body)) + "\n"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("workdir", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    store.write_text(arguments.out / "tables.md", text(arguments.workdir))


if __name__ == "__main__":
    main()
