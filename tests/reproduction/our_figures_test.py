"""Printed numbers and ours: which figure answers which number."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.reproduction import comparisons, our_figures, papers
from tests.sweeps import columns
from vfljax import store
from vfljax.config import Reproduces
from vfljax.sweep.grid import parse

RULE = "direct/most_negative"  # an attack of the stored sweep
ARMS = {"undefended": "none", "gafm": "gafm"}
CRITEO = Reproduces("gafm/2", "Criteo", arms=ARMS, attacks={"norm": RULE})


@pytest.fixture(scope="module")
def compared(defended):
    return {c.number.id: c for c in our_figures.compare(defended, CRITEO)}


def rows_of(sweep, federation, **fields):
    return [
        row
        for row in sweep.results.to_pylist()
        if row["federation"] == federation and all(row[k] == v for k, v in fields.items())
    ]


def number(compared, defense, attack):
    (c,) = (
        o for o in compared.values() if (o.number.defense, o.number.attack) == (defense, attack)
    )
    return c


def test_a_configuration_is_the_one_whose_knobs_are_the_number_s_setting(compared, defended):
    """GAFM's numbers on Criteo are of Delta .5; the sweep has .1 too."""
    assert list(compared) == [n.id for n in papers.numbers_of("gafm/2", "Criteo")]
    c = number(compared, "gafm", "")
    rows = rows_of(defended, "split", method="gafm", **{"gafm.delta": 0.5})
    assert c.ours == tuple(row["test_oriented_auc"] for row in rows)
    assert c.federation == "split"
    other = Reproduces("gafm/2", "Spambase", arms=ARMS)  # Delta .05: none
    blank = {o.number.defense: o for o in our_figures.compare(defended, other)}
    assert blank["gafm"].ours == ()
    assert blank["none"].point == "undefended"
    plain = number(compared, "none", "")
    assert plain.agreement is not None
    reduced = plain._replace(scale="reduced")  # a smaller run is judged against no number
    assert reduced.agreement is None
    assert comparisons.row(reduced)[-1] == "reduced run: no verdict"


def test_an_attack_is_the_one_that_the_config_names_on_the_federation_papers_attack(
    compared, defended
):
    c = number(compared, "none", "norm")
    settings = [row["trial"] for row in rows_of(defended, "no_split", method="undefended")]
    leaks = {a["trial"]: a["leak"] for a in defended.attacks.to_pylist() if a["label"] == RULE}
    assert c.ours == tuple(leaks[setting] for setting in settings)
    assert (c.federation, c.figure) == ("no_split", f"{RULE} leak")
    # with figures of the other federation, which do not count
    split = {row["seed"]: row["trial"] for row in rows_of(defended, "split", method="undefended")}
    rows = defended.attacks.to_pylist()
    rows += [
        {**row, "federation": "split", "trial": split[row["seed"]], "leak": 0.1}
        for row in rows
        if row["trial"] in settings
    ]
    both = pa.Table.from_pylist(rows, defended.attacks.schema)
    again = our_figures.compare(defended._replace(attacks=both), CRITEO)
    assert next(o for o in again if o.number == c.number).ours == c.ours
    assert number(compared, "none", "mean").ours == ()  # the sweep has no such attack
    assert number(compared, "marvell", "").ours == ()  # nor such an arm


FACTS = {"non_label_parties": 3, "feature_split": "1:1:1", "aggregation": "average"}


def test_facts_of_the_whole_sweep_must_be_those_of_the_number(defended):
    def ours(**setting):
        same = Reproduces("gafm/C.1", "Criteo", arms={"undefended": "none"}, setting=setting)
        return sum(len(c.ours) > 0 for c in our_figures.compare(defended, same))

    assert ours(**FACTS) == 2  # training and test AUC
    assert ours(**{**FACTS, "feature_split": "2:2:1"}) == 0
    assert ours(undefended=FACTS) == 2
    assert ours(gafm=FACTS) == 0


def test_training_auc_is_oriented_and_the_released_evaluation_counts_where_there_is_one(defended):
    arms = Reproduces("gafm/C.1", "Criteo", arms={"gafm": "gafm"}, setting=FACTS)
    rows = [
        {**r, "train_auc": 0.2 + 0.5 * r["seed"], our_figures.POOLED: 0.25 + r["seed"]}
        for r in defended.results.to_pylist()
    ]
    sweep = defended._replace(results=pa.Table.from_pylist(rows))
    found = {c.number.split: c for c in our_figures.compare(sweep, arms) if c.ours}
    assert found["train"].ours == pytest.approx((0.8, 0.7))
    assert (found["test"].figure, found["test"].ours) == (our_figures.POOLED, (0.25, 1.25))


def test_a_ratio_of_leaks_is_their_mean_over_three_attacks_by_the_training_auc(
    defended, monkeypatch
):
    rows = rows_of(defended, "split", method="gafm", **{"gafm.delta": 0.5})
    leaks = {"norm": 0.6, "mean": 0.7, "median": 0.95}
    attacked = [
        {**defended.attacks.to_pylist()[0], **columns(name), "leak": leak}
        | {"trial": row["trial"], "seed": row["seed"]}
        for row in rows
        for name, leak in leaks.items()
    ]
    about = {
        row["variant"]: {**row, "federations": ["split"], "knobs": [{}], "status": "ok"}
        for row in attacked
    }
    monkeypatch.setattr(store, "attack_summary", lambda _: about)
    arms = Reproduces("gafm/D.6", "IMDB", arms={"gafm": "gafm"}, setting={"sampling_ratio": 1.0})
    sweep = defended._replace(attacks=pa.Table.from_pylist(attacked))
    (c,) = (o for o in our_figures.compare(sweep, arms) if o.ours)
    assert c.number.setting == {"sigma": 0.01, "delta": 0.5, "gamma": 1, "sampling_ratio": 1.0}
    auc = [max(row["train_auc"], 1 - row["train_auc"]) for row in rows]
    assert c.ours == pytest.approx([0.75 / a for a in auc])


def test_another_method_for_a_number_is_a_variant_of_its_name(defended):
    arms = {"undefended": "none", "gafm": "none"}
    rows = our_figures.compare(defended, Reproduces("gafm/2", "Criteo", arms=arms))
    auc = [c for c in rows if c.number.defense == "none" and not c.number.attack]
    assert [c.figure for c in auc] == ["several: undefended, gafm delta=.1, gafm delta=.5"]
    assert auc[0].ours == ()  # gafm has two points, and which is meant is not said
    results = defended.results.to_pylist()
    again = [
        {**row, "configuration": 99, "method": "again", "trial": 1000 + row["trial"]}
        for row in results
        if row["method"] == "undefended"
    ]
    twice = pa.Table.from_pylist(results + again, defended.results.schema)
    arms = {"undefended": "none", "again": "none"}
    reproduces = Reproduces("gafm/2", "Criteo", variant="minmax", arms=arms)
    every = our_figures.compare(defended._replace(results=twice), reproduces)
    rows = [c for c in every if c.number.defense == "none"]
    assert [c.variant for c in rows[:2]] == ["minmax", "minmax again"]
    assert rows[0].ours == rows[1].ours


def test_a_report_adds_the_paper_s_numbers_beside_ours(defended):
    fields = {"table": "gafm/2", "dataset": "Criteo", "arms": ARMS, "attacks": {"norm": RULE}}
    experiment = parse({**defended.config, "reproduces": fields})
    (section,) = our_figures.extend(defended, experiment).sections
    assert "Han and Guan 2023" in section.caption
    mean = np.mean(
        [r["test_oriented_auc"] for r in rows_of(defended, "split", method="undefended")]
    )
    text = section.frame.to_string()
    for words in ("0.72 (0.69 to 0.77 of 10)", "differ", f"{mean:.3f}"):
        assert words in text
    plain = parse({**defended.config, "reproduces": None})
    assert our_figures.extend(defended, plain).sections == ()
