"""What training and attacks took, from what a sweep stored."""

import pathlib

from vfljax import store
from vfljax.report import times

STORED = pathlib.Path("tests/fixtures/stored_sweep")


def test_training_leads_then_attacks_by_seconds_and_their_sum():
    sweep = store.load(STORED)
    header, rows = times.table(sweep)
    seconds = [float(row[header.index("seconds")]) for row in rows]
    summary = store.attack_summary(STORED)
    ran = [a for a in summary.values() if a["status"] == "ok" and a["settings"]]
    attacked = {a["label"]: a["seconds"] for a in ran}
    names = [row[0] for row in rows]
    assert names[0] == "training"
    assert abs(seconds[0] - sum(sweep.results["seconds"].to_pylist())) < 0.06
    assert names[1:-1] == sorted(attacked, key=lambda a: -attacked[a])
    assert abs(seconds[-1] - sum(attacked.values())) < 0.06
    took = attacked["direct/first_negative"]  # of 10 settings
    direct = next(row for row in rows if row[0] == "direct/first_negative")
    assert direct[1:4] == [f"{took:.1f}", "10", f"{100 * took:.1f}"]
    assert float(direct[4]) == round(took / sum(sweep.results["seconds"].to_pylist()), 2)
