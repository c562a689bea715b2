"""What was not attacked or not scored, and why; and what else a reader of the figures must know."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from vfljax import attacks, defenses
from vfljax.report import tables
from vfljax.report.frames import PANELS
from vfljax.report.judged_sweep import Judged
from vfljax.report.points import members, members_of, points_of
from vfljax.report.templates import paragraphs
from vfljax.report.words import listed
from vfljax.sweep.grid import configurations
from vfljax.types import NO_SPLIT


def not_attacked(judged: Judged) -> list[str]:
    """Returns sentences on what was not attacked or not scored, and why."""
    rows, every = judged.rows, judged.attacks.values()
    learned = {*rows.loc[rows["role"] == "learner", "known"]}
    attacked = {*rows.loc[rows["role"] == "attack", "known"]} - {0}
    whole = len(judged.trials) >= judged.sweep.header["trials"]
    methods = [] if whole else [*reached(judged).itertuples()]
    seeds = judged.experiment.seeds
    return paragraphs(
        "not_attacked",
        skipped=[entry for entry in every if entry["status"] == "skipped"],
        untrained=[of.method for of in methods if not of.trained],
        partly=[
            f"{of.method} at {of.trained} of {of.planned}"
            for of in methods
            if 0 < of.trained < of.planned
        ],
        fewer_seeds=[f"{of.method} on {of.seeds}" for of in methods if 0 < of.seeds < seeds],
        every_seed=seeds,
        settled=_settled(judged),
        defense_unknown=_defense_unknown(judged),
        without_figures=_without_figures(judged),
        # numbers of known labels for which nothing was learned without the federation
        not_scored=sorted(attacked - learned),
    )


def reached(judged: Judged) -> pd.DataFrame:
    """Returns a row for each method, in the config's order: ``method``, the ``planned`` and the
    ``trained`` number of its operating points, and the fewest ``seeds`` of one of the latter."""
    of = judged.trials.groupby(["method", "configuration"])["seed"].nunique().groupby("method")
    planned = configurations(judged.experiment)["method"].value_counts(sort=False)
    out = pd.DataFrame({"planned": planned, "trained": of.size(), "seeds": of.min()})
    return out.loc[planned.index].fillna(0).astype(int).rename_axis("method").reset_index()


def _defense_unknown(judged: Judged) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yields method, panel, defense, advice, and whether its author says that an attack knows it, where no
    attack is known to take the defense into account. The advice is "" if no such attack is for these labels."""
    of = judged.leading
    unknown = of[of["leak"].notna() & ~of["known_by"]].drop_duplicates(["panel", "method"])
    for row in unknown.to_dict("records"):
        for name in members_of(row["defenses"]):
            advice, panel = defenses.TABLE[name].advice(row["panel"]), PANELS[row["panel"]]
            if advice:
                usable = _usable(name, row["panel"], judged.facts.classes)
                yield row["method"], panel, name, advice * usable, bool(row["author_says"])


def _usable(defense: str, panel: str, classes: int) -> bool:
    """Returns whether an attack that knows a defense is defined for so many classes, or for numbers."""
    known_by = defenses.TABLE[defense].known_by.get(panel, ())
    rows = [attacks.TABLE.get(knower.attack) for knower in known_by]
    return classes > 1 or any(row is not None and not row.not_for_numbers for row in rows)


def _settled(judged: Judged) -> dict[str, str]:
    """Returns the numbers of settled rows and of all, and those by who settled them; {} if none is settled."""
    attacked = judged.rows[judged.rows["role"] == "attack"]
    counts = attacked.loc[attacked["settled_by"] != "", "settled_by"].value_counts()
    if not len(counts):
        return {}
    by = listed([f"{number:,} by {label}" for label, number in counts.items()])
    return {"count": f"{counts.sum():,} of {len(attacked):,}", "by": by}


def _without_figures(judged: Judged) -> list[tuple[str, int, int, list[str]]]:
    """Returns label, diverged trials, all trials, and panels without any attack's figure, of each configuration
    that lacks some."""
    label = judged.verdicts.drop_duplicates("configuration").set_index("configuration")["label"]
    trials = judged.trials.groupby("configuration")["diverged"].agg(["sum", "count"])
    some = judged.leading.groupby("panel")["leak"].transform("count") > 0
    missing = judged.leading[judged.leading["leak"].isna() & some]
    panels = missing["panel"].map(PANELS).groupby(missing["configuration"]).agg(list)
    found = ((label[c], *counts, panels.get(c, [])) for c, *counts in trials.itertuples())
    return [of for of in found if of[1] or of[3]]


def remarks(judged: Judged) -> list[str]:
    """Returns what else the figures mean, in sentences."""
    bounds = (
        defenses.TABLE[of.defense].remarks(of.knobs, of.options).bound_sentence
        for of in members(points_of(judged.trials))
    )
    sentences = [*dict.fromkeys(filter(None, bounds)), *_turned(judged)]
    return [*sentences, *_untrained(judged), *_projected(judged), *_old_rules(judged)]


def _turned(judged: Judged) -> Iterator[str]:
    """Yields a sentence if trainings learned two classes the wrong way round."""
    if "inverted" not in judged.trials:
        return
    inverted = judged.trials["inverted"].fillna(0).eq(1)
    counts = inverted.groupby(judged.trials["method"], sort=False).agg(["sum", "count"])
    turned = counts[counts["sum"] > 0]
    if len(turned):
        listed = ", ".join(f"{method} {n} of {all_}" for method, n, all_ in turned.itertuples())
        yield (
            f"Some runs learned the two classes the wrong way round (training AUC below 1/2): {listed}. The "
            "label party sees that on its own training labels and turns its predictions: utilities here are "
            "after that; the results hold both (test_accuracy, test_oriented_accuracy)."
        )


def _untrained(judged: Judged) -> Iterator[str]:
    """Yields a sentence on methods that cannot be trained without a top model, if a panel has none."""
    if NO_SPLIT not in {*judged.trials["panel"]}:
        return
    methods = judged.trials.drop_duplicates("method")[["method", "defenses"]]
    untrained = [
        method
        for method, chain in methods.itertuples(index=False)
        if any(defenses.TABLE[name].needs_top for name in members_of(chain))
    ]
    if untrained:
        yield (
            "Not trained without model splitting, and not attacked there, because the top model is part of "
            f"the defense: {', '.join(untrained)}."
        )


def _projected(judged: Judged) -> Iterator[str]:
    """Yields a sentence for each width of a cut that attacks read projected."""
    of_width: dict[tuple[int, int], dict[str, None]] = {}
    for entry in judged.attacks.values():
        if "projected" in entry:
            of_width.setdefault(tuple(entry["projected"]), {})[entry["attack"]] = None
    for (width, read), names in of_width.items():
        yield (
            f"Of the {width:,} numbers that a party sends or receives for a row, these attacks read a "
            f"projection to {read:,} by a Gaussian matrix, drawn by the seed of the run: {listed([*names])}."
        )


def _old_rules(judged: Judged) -> Iterator[str]:
    for entry in judged.attacks.values():
        if entry["status"] != "skipped" and tables.title(entry) != entry["label"]:
            yield (
                f"{tables.title(entry)}: `vfljax sweep` attacks with the present rule too, and "
                "keeps its rows apart."
            )
