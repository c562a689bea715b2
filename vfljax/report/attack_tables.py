"""Tables of attacks: what each was given, what it cost, and what its baselines reach."""

from __future__ import annotations

from vfljax import attacks as attack_table
from vfljax import store
from vfljax.report import stored_rows
from vfljax.report.stored_rows import KINDS, StoredRows, Table

SECONDS = (
    "Wall-clock seconds of the machine that ran it, the slowest attack first. Runs of an attack include those "
    "on its baselines. Of the programs of training only the epochs are counted, of an attack everything."
)


def attack_rows(rows: StoredRows) -> Table:
    """Each attack variant: what it was given, what it cost, and how much less than published."""
    header = [
        *("attack", "federation", "known labels", "oracle or diagnostic", "optimizer steps"),
        *("published steps", "seconds", "compiles / shapes of view", "trials"),
    ]
    out = []
    for entry in rows.described.values():
        if entry["status"] == "skipped":
            out.append([entry["label"], "skipped: " + entry["reason"], *[""] * 7])
            continue
        kinds = [k for k in stored_rows.federations_of(entry) if k in rows.kinds_trained]
        known = ", ".join(f"{p['known']:g}" for p in entry["knobs"] if "known" in p) or "0"
        out.append(
            [
                stored_rows.rule_title(entry),
                ", ".join(KINDS[k] for k in kinds) or "none",
                entry.get("labels") or known,
                "yes" if entry.get("oracle") else "no",
                f"{entry['steps']:,}",
                f"{steps_published(entry['attack']):,}",
                f"{entry['seconds']:.1f}",
                f"{entry['compiles']} / {entry['views']}",
                str(entry["trials"]),
            ]
        )
    return header, out


def steps_published(attack: str) -> int:
    """Optimizer steps of the published attack; 0 of one that trains nothing, and of the local-only baseline."""
    return 0 if attack == store.LOCAL_ONLY else attack_table.TABLE[attack].published_steps


def seconds_rows(rows: StoredRows) -> Table:
    """A row for training and one for each attack variant: seconds, runs, milliseconds a run, the seconds as a
    share of training's, and how many programs were compiled."""
    header = ["", "seconds", "runs", "ms a run", "training is 1", "compiles"]
    trained = sum(trial.figures.get("seconds") or 0.0 for trial in rows.trials)

    def line(name: str, seconds: float, runs: int, compiles: str = "") -> list[str]:
        each = f"{1e3 * seconds / runs:.1f}" if runs else "-"
        share = f"{seconds / trained:.2f}" if trained else "-"
        return [name, f"{seconds:.1f}", f"{runs:,}", each, share, compiles]

    ran = [
        (stored_rows.rule_title(entry), entry)
        for entry in rows.described.values()
        if entry["status"] != "skipped" and entry["trials"]
    ]
    ran.sort(key=lambda pair: -pair[1]["seconds"])
    return header, [
        line("training", trained, len(rows.trials)),
        *(line(name, e["seconds"], e["rows"], str(e["compiles"])) for name, e in ran),
        line("all attacks", sum(e["seconds"] for _, e in ran), sum(e["rows"] for _, e in ran)),
    ]
