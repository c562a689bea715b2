"""Tables of attacks: what each was given, what it cost, and what its baselines reach."""

from __future__ import annotations

from collections.abc import Callable

from vfljax import attacks as attack_table
from vfljax import store
from vfljax.report import stored_rows
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import titles
from vfljax.report.intervals import interval
from vfljax.report.stored_rows import KINDS, AttackFigures, StoredRows, Table
from vfljax.types import AttackIdentity

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


def baseline_rows(assessed: Assessed) -> Table:
    """What attacks that know labels reach, and what the same labels reach without the federation."""
    header = [
        *("attack", "configuration", "success", "success, test rows", "untrained bottom"),
        *("logistic regression, same labels", "same attack, all labels (upper bound)"),
    ]
    fields = (
        *("success", "test_success", "untrained_success", "logistic_success"),
        "all_labels_success",
    )
    has_one = "logistic_success"
    grouped = _by_attack(
        assessed, lambda row: row.point == 0 and row.figures.get(has_one) is not None
    )
    names = titles(key for key, _ in grouped)
    return header, [
        [names[key], label, *(str(interval(row.figures.get(f) for row in rows)) for f in fields)]
        for (key, label), rows in grouped.items()
    ]


def known_rows(assessed: Assessed) -> Table:
    """Attack success by the number of known labels, where that is an axis."""
    grouped: dict[tuple[AttackIdentity, str], dict[float, list[AttackFigures]]] = {}
    for place, rows in _by_attack(assessed, lambda row: "known" in row.knobs).items():
        for row in rows:
            grouped.setdefault(place, {}).setdefault(row.knobs["known"], []).append(row)
    grouped = {place: by_count for place, by_count in grouped.items() if len(by_count) > 1}
    names = titles(key for key, _ in grouped)
    counts = sorted({known for by_count in grouped.values() for known in by_count})
    header = ["attack", "configuration", *(f"{known:g} labels" for known in counts)]
    out = []
    for (key, label), by_count in grouped.items():
        figures = (
            interval(row.figures["success_unlabeled"] for row in by_count.get(known, ()))
            for known in counts
        )
        out.append([names[key], label, *map(str, figures)])
    return header, out


def _by_attack(
    assessed: Assessed, wanted: Callable[[AttackFigures], bool]
) -> dict[tuple[AttackIdentity, str], list[AttackFigures]]:
    """Rows by attack, whatever it knows, and by the label of the configuration."""
    assert assessed.rows is not None
    numbers = {trial.trial: trial.configuration for trial in assessed.rows.trials}
    labels = {c.number: c.label for c in assessed.configurations}
    out: dict[tuple[AttackIdentity, str], list[AttackFigures]] = {}
    for row in filter(wanted, assessed.rows.attacks):
        place = row.identity._replace(known=0), labels[numbers[row.trial]]
        out.setdefault(place, []).append(row)
    return out


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
