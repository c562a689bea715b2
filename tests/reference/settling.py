"""Which attacks a cheaper one settles, in loops over records of ``vfljax.report.rows``."""

import math

SETTLES = 0.995


def settled(rows, cost):
    """The rows, of which those that are settled have no figure and name who settled them.

    A row of an attack that knows k labels and reads at least SETTLES settles, in its run, every dearer attack
    by the same attackers that knows at least k. Who is settled was not run, and settles nobody. ``cost`` is a
    number for each attack, by name; learners and oracles take no part.
    """
    out = [dict(r) for r in rows]
    attacks = sorted(
        (r for r in out if r["role"] == "attack"), key=lambda r: (cost[r["attack"]], r["label"])
    )
    for r in attacks:
        for s in attacks:
            same = all(r[x] == s[x] for x in ("configuration", "panel", "seed", "attackers"))
            cheaper = cost[s["attack"]] < cost[r["attack"]] and s["known"] <= r["known"]
            if same and cheaper and s["leak"] >= SETTLES:  # NaN settles nobody
                r |= {"leak": math.nan, "settled_by": s["label"]}
                break
    return out
