"""A stored sweep as frames, figures, LaTeX and labeled arrays: what it shows is what is stored and judged."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import vfljax
from tests.stored_sweep import CONFIG, FIXTURE
from vfljax import store
from vfljax.errors import UserError


@pytest.fixture(scope="module")
def sweep():
    return vfljax.load(FIXTURE)


def changed(sweep, edit=lambda results: results, **header):
    """The sweep with other rows of results, or other fields of its header."""
    results = pa.Table.from_pandas(edit(sweep.results.to_pandas()), preserve_index=False)
    return sweep._replace(results=results, header={**sweep.header, **header})


def with_seeds(sweep, shift=0.0, seeds=5):
    """The sweep with seeds 0, 1, 2, ... of figures that are known; ``shift`` is of the accuracy."""
    results, attacks = (t.to_pandas() for t in (sweep.results, sweep.attacks))
    results, attacks = results[results["seed"] == 0], attacks[attacks["seed"] == 0]
    results["test_accuracy"] += shift
    tables = [
        pa.Table.from_pandas(
            pd.concat(
                frame.assign(
                    seed=seed,
                    trial=frame["trial"] + 100 * seed,
                    **{n: frame[n] + 0.01 * seed**2 * (1 + 50 * shift) for n in names},
                )
                for seed in range(seeds)
            ),
            preserve_index=False,
        )
        for frame, names in ((results, ["test_accuracy"]), (attacks, ["leak"]))
    ]
    return sweep._replace(results=tables[0], attacks=tables[1])


def test_verdicts_are_the_judged_ones_with_knobs(sweep):
    sweep = with_seeds(sweep)
    frame, judged = sweep.verdicts(), sweep.judged
    assert {*frame["known"]} == {judged.facts.known} == {20}
    columns = [name for name in judged.verdicts if name in frame]
    pd.testing.assert_frame_equal(frame[columns], judged.leading[columns].reset_index(drop=True))
    results = sweep.results.to_pandas().drop_duplicates("configuration")
    results = results.set_index("configuration").loc[frame["configuration"]]
    assert frame["method"].tolist() == results["method"].tolist()
    for name in ("kdk.epsilon", "noise.scale"):
        np.testing.assert_array_equal(frame[name].astype(float), results[name].astype(float))
    assert not frame["leak_lower"].isna().any()
    assert {*frame["verdict"]} <= {*vfljax.VERDICTS}
    assert {*sweep.verdicts(known=10)["known"]} == {10}
    with pytest.raises(KeyError, match="choose from 20, 10"):
        sweep.verdicts(known=3)


def test_leaks_have_a_row_for_each_stored_one_and_an_attack_is_chosen_by_its_options(sweep):
    leaks, stored = sweep.leaks(), sweep.attacks.to_pandas()
    key = ["trial", "variant", "point"]
    stored = stored.rename(columns={"attack_configuration": "point"})
    both = leaks.merge(stored[[*key, "success"]], on=key, suffixes=("", "_stored"))
    assert len(both) == len(stored)
    assert stored["leak"].notna().sum() == leaks["leak"].notna().sum()  # some are settled
    np.testing.assert_array_equal(both["success"], both["success_stored"])
    learners = sweep.judged.rows[sweep.judged.rows["role"] == "learner"]
    best = learners.groupby(["known", "draws", "seed"])["leak"].max()
    for row in leaks[leaks["excess"].notna()].to_dict("records"):
        alone = best[row["known"], row["draws"], row["seed"]]
        assert row["excess"] == pytest.approx(row["leak"] - alone)
    chosen = sweep.attack_rows("direct", rule="most_negative")
    expected = leaks[leaks["label"] == "direct/most_negative"]
    assert chosen["leak"].dropna().tolist() == expected["leak"].dropna().tolist() != []
    assert {*sweep.attack_rows("probe", known=20)["known"]} == {20}
    assert len(sweep.attack_rows("direct")) == (leaks["attack"] == "direct").sum() > len(chosen)
    with pytest.raises(KeyError, match="rule='first_negative', rule='most_negative'"):
        sweep.attack_rows("direct", rule="worst")
    with pytest.raises(KeyError, match="choose from active, direct, passive, probe"):
        sweep.attack_rows("norm")


def test_a_sweep_is_shown_in_five_lines_and_a_table_without_markup_of_names(sweep):
    text = repr(sweep)
    assert len(text.splitlines()) == 5
    assert max(map(len, text.splitlines())) <= 110
    header, results = sweep.header, sweep.results.to_pandas()
    waiting, every = len(header["shards"]) - results["shard"].nunique(), len(header["shards"])
    for shown in (
        *(CONFIG["name"], CONFIG["data"]["name"], f"{len(results)} of {header['trials']}"),
        *("direct, passive, probe", f"{waiting} of {every} shards"),
    ):
        assert shown in text
    assert waiting > 0
    named = sweep._replace(header={**sweep.header, "config": {**sweep.config, "name": "<b>a"}})
    assert "<b>" not in named._repr_html_()
    assert named._repr_html_().count("<tr>") == 5
    assert "unfinished: nothing" in repr(sweep._replace(unfinished=()))


def test_figures_are_those_of_the_report_and_latex_escapes_names(sweep):
    assert sweep.figure("curve_kdk").axes[0].get_xlabel() == "epsilon"
    with pytest.raises(KeyError, match="choose from frontier, .*curve_kdk"):
        sweep.figure("heat_kdk")
    text = changed(sweep, lambda r: r.replace({"method": {"wide": "50%_&"}})).to_latex()
    assert "50\\%\\_\\& epsilon=.45" in text


def test_labeled_arrays_have_leaks_and_the_knobs_of_a_full_grid(sweep):
    pytest.importorskip("xarray")
    leaks = sweep.leaks()
    arrays = sweep.to_xarray()
    assert arrays["leak"].dims == ("configuration", "federation", "seed", "attack")
    found = leaks[(leaks["point"] == 0) & leaks["leak"].notna()]
    for row in found[::5].to_dict("records"):
        at = {"configuration": row["configuration"], "federation": row["federation"]}
        attack = store.attack_summary(FIXTURE)[row["variant"]]["label"]
        figure = arrays["leak"].sel(**at, seed=row["seed"], attack=attack)
        np.testing.assert_equal(float(figure), row["leak"])

    def grid(results):
        """kdk with four points of a grid of two knobs."""
        for number, epsilon, k in ((1, 0.0, 2.0), (2, 0.45, 2.0), (3, 0.45, 3.0), (4, 0.0, 3.0)):
            at = results["configuration"] == number
            results.loc[at, ["method", "defenses"]] = "kdk"
            results.loc[at, ["kdk.epsilon", "kdk.k", "noise.scale"]] = epsilon, k, None
        return results.assign(**{"model.top": None, "model.top_hidden": None})

    whole = changed(sweep, grid)
    along = whole.to_xarray("kdk")
    assert along["test_accuracy"].dims == ("kdk.epsilon", "kdk.k", "federation", "seed")
    figure = along["test_accuracy"].sel({"kdk.epsilon": 0.45, "kdk.k": 3.0}).to_numpy()
    other = whole.to_xarray()["test_accuracy"].sel(configuration=3).to_numpy()
    np.testing.assert_array_equal(figure, other)
    assert sweep.to_xarray("noise")["leak"].dims == ("federation", "seed", "attack")
    part = changed(whole, lambda r: r[r["configuration"] != 4])
    with pytest.raises(UserError, match=r"no full grid of kdk.epsilon, kdk.k: call to_xarray\(\)"):
        part.to_xarray("kdk")


def test_two_sweeps_are_compared_by_seed_where_their_settings_match(sweep):
    a, b = with_seeds(sweep), with_seeds(sweep, shift=0.02)
    fewer = b.results.to_pandas()
    fewer.loc[fewer["method"] == "noise", "noise.scale"] = 0.5
    training = {**b.config["training"], "epochs": 9}
    b = b._replace(
        results=pa.Table.from_pandas(fewer, preserve_index=False),
        header={**b.header, "config": {**b.config, "training": training}},
    )
    frame = vfljax.compare(a, b)
    assert frame.attrs["changed_fields"] == ["training.epochs: 3 -> 9"]
    other = frame[frame["method"] == "noise"]
    assert {*other["found_in"]} == {"a", "b"}
    assert np.isnan(other["difference"]).all()
    assert (other["seeds"] == 0).all()
    same = frame[frame["method"] != "noise"]
    assert {*same["found_in"]} == {"both"}
    assert {*same["seeds"]} == {5}
    seeds = np.arange(5.0)
    expected = {"accuracy": 0.02 + 0.01 * seeds**2, "leak": 0.01 * seeds**2}
    for row in same.to_dict("records"):
        differences = expected[row["figure"]]
        error = differences.std(ddof=1) / np.sqrt(5)
        away = stats.t.ppf(0.95, 4) * error
        limits = differences.mean() - away, differences.mean() + away
        assert row["difference"] == pytest.approx(differences.mean())
        assert (row["lower"], row["upper"]) == pytest.approx(limits)
        assert row["b"] - row["a"] == pytest.approx(row["difference"])
    assert len(vfljax.compare(a, a)) == len(same) + len(other) // 2
    equal = vfljax.compare(a, a).query("figure == 'leak'")
    # what is equal on every seed has the spread of half a row
    assert equal["upper"].between(0.001, 0.05).all()
    with pytest.raises(UserError, match="other data or splits"):
        vfljax.compare(a, changed(a, checksum="another"))
    with pytest.raises(UserError, match="other data or splits"):
        vfljax.compare(a, changed(a, data={**a.header["data"], "train": 50}))


def test_a_settled_row_has_its_settler_among_the_leaks_and_no_figure_anywhere(sweep):
    rows = sweep.attacks.to_pandas()
    gone = (rows["label"] == "direct/most_negative") & (rows["seed"] == 0)
    rows["settled_by"] = gone.map({True: "direct/first_negative", False: None})
    rows["leak"] = rows["leak"].mask(gone)
    settled = sweep._replace(attacks=pa.Table.from_pandas(rows, preserve_index=False))
    leaks = settled.leaks()
    leaks = leaks[(leaks["label"] == "direct/most_negative") & (leaks["panel"] == "no_split")]
    assert {*zip(leaks["seed"], leaks["settled_by"])} == {(0, "direct/first_negative"), (1, "")}
    assert (leaks["leak"].isna() == (leaks["seed"] == 0)).all()
    compared = vfljax.compare(sweep, settled)
    of = compared[compared["attack"] == "direct/most_negative"]
    assert {*of["found_in"], *of["seeds"]} == {"both", 1}
