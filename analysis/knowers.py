"""What attacks that know a defense read of planted labels, beside what all others read.

    python -m analysis.knowers WORKDIR --out=analysis/results/knowers

WORKDIR is a finished sweep of configs/knowers.py. ``tables.md`` has a line for each configuration: in each
federation the highest leak of the attacks that ``DefenseRow.known_by`` names for its defenses, with the attack,
and the highest of all other attacks. The report's own tables hold every attack.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false

from __future__ import annotations

import argparse
import pathlib

import pandas as pd

from vfljax import defenses, store
from vfljax.report import tables
from vfljax.report.frames import read_frames
from vfljax.report.points import members_of, points_of
from vfljax.types import NO_SPLIT, SPLIT


def highest(rows: pd.DataFrame) -> tuple[float, str]:
    """The highest leak of these rows, and the attack's label."""
    found = rows[rows["leak"].notna()]
    if not len(found):
        return 0.0, ""
    most = found.loc[found["leak"].idxmax()]
    return float(most["leak"]), str(most["label"])


def text(workdir: pathlib.Path) -> str:
    """The table, as Markdown."""
    sweep = store.load(workdir)
    rows, trials, _, entries = read_frames(sweep)
    attacks = rows[rows["role"] == "attack"]
    identities = {key: store.identity_of(entries[key]) for key in attacks["variant"].unique()}
    header = ["configuration"]
    for title in ("split", "no split"):
        header += [f"{title}: who knows it", "others"]
    body = []
    points = points_of(trials).sort_index()[["label", "defenses"]]
    for number, label, chain in points.itertuples(name=None):
        line = [label]
        every = [defenses.TABLE[name] for name in members_of(str(chain))]
        for kind in (SPLIT, NO_SPLIT):
            of = (attacks["configuration"] == number) & (attacks["federation"] == kind)
            knows = {
                key: any(row.known_to(kind, [identity]) for row in every)
                for key, identity in identities.items()
            }
            knowing = attacks["variant"].map(knows).astype(bool)
            shown = attacks[of & (knowing if every else True)], attacks[of & ~knowing]
            (leak, label), (rest, _) = map(highest, shown)
            line.append(f"{leak:.3f} {label}".removeprefix("0") if label else "-")
            line.append(f"{rest:.3f}".removeprefix("0") if rest and every else "-")
        body.append(line)
    return tables.markdown(pd.DataFrame(body, columns=header)) + "\n"


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
