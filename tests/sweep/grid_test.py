"""From a config to the table of trials: no data is read, and nothing computed."""

import msgspec
import pandas as pd
import pytest

from tests.refusals import refused
from tests.sweeps import plan_of, tiny
from vfljax import store
from vfljax.errors import UserError
from vfljax.sweep import grid, grouping, plan, specs
from vfljax.sweep.grid import parse
from vfljax.types import DefenseSpec, Federation, Input

BOTH = [Federation(), Federation(False)]
HALVES = specs.DataShape(10, 320, (Input("image", (8, 4)),) * 2)


def test_a_grid_is_the_product_of_its_axes_times_federations_times_seeds():
    every = [Federation(), Federation(True, (0,)), Federation(False)]
    trials = grid.trials(parse(tiny(seeds=3)), every)
    assert len(trials) == (1 + 4 + 1) * 3 * 3
    assert [*trials["trial"]] == [*range(54)]
    assert [*trials["seed"][:3]] == [0, 1, 2]
    assert [*trials["federation"].unique()] == ["split", "malicious-0", "no_split"]
    assert (trials.groupby("configuration").size() == 9).all()


def test_a_row_holds_every_knob_and_nothing_of_defenses_that_its_method_lacks():
    trials = grid.trials(parse(tiny(**{"training.learning_rate": (0.1, 0.2)})), BOTH)
    assert [*trials][:6] == [*grid.IDENTITY]
    rows = grid.trial_rows(trials)
    kdk = next(row for row in rows if row["method"] == "kdk")
    assert {"kdk.epsilon", "kdk.k", "learning_rate", "momentum", "gamma", "seed"} <= set(kdk)
    assert "noise.scale" not in kdk
    assert {row["learning_rate"] for row in rows} == {0.1, 0.2}


def test_configurations_are_every_combination_with_defaults_filled_in():
    noise = {"scale": (0.1, 0.2), "law": ("laplace", "gaussian")}
    chain = {"noise": noise, "marvell": {"power": 1}}
    rows = grid.trial_rows(grid.configurations(parse(tiny(grid={"a": chain, "b": {}}))))
    assert [(row.get("noise.scale"), row.get("noise.law")) for row in rows] == [
        *((0.1, "laplace"), (0.1, "gaussian"), (0.2, "laplace"), (0.2, "gaussian")),
        (None, None),
    ]
    assert grid.knobs_of(rows[0])["marvell"] == {"power": 1.0, "error": 0.25}
    assert specs.chain_of(rows[1]) == (
        DefenseSpec("noise", (("law", "gaussian"),)),
        DefenseSpec("marvell"),
    )
    assert [*grid.defense_values(parse(tiny(grid={"a": chain})))] == ["noise", "marvell"]


def test_a_whole_option_stays_whole_beside_methods_that_lack_it():
    cae = {"cae": {"confusion": 1.0, "width": (8, 16), "steps": 1}}
    rows = grid.trial_rows(grid.configurations(parse(tiny(grid={"a": {}, "b": cae}))))
    assert [type(row["cae.width"]) for row in rows[1:]] == [int, int]


def test_a_defense_that_needs_a_top_model_is_not_trained_without_one():
    gafm = {"gafm": {"gafm": {"delta": 0.2}}, "undefended": {}}
    trials = grid.trials(parse(tiny(grid=gafm)), BOTH)
    trained = {*zip(trials["method"], trials["federation"], strict=True)}
    assert trained == {("gafm", "split"), ("undefended", "split"), ("undefended", "no_split")}


def test_an_extended_sweep_keeps_its_trials_and_numbers_the_new_ones_on():
    # the new method is listed first, and the new value of a knob between those there are
    methods = {
        "new": {"max_norm": {}},
        "undefended": {},
        "kdk": {"kdk": {"epsilon": (0.0, 0.2, 0.45), "k": (1, 3)}},
        "noise": {"noise": {"scale": 0.01}},
    }
    configs = parse(tiny()), parse(tiny(seeds=3, grid=methods))
    stages = [(config, grid.trials(config, BOTH)) for config in configs]
    (alone,) = grid.added(stages[:1])
    pd.testing.assert_frame_equal(alone, stages[0][1])
    old, new, none = grid.added([*stages, stages[1]])
    pd.testing.assert_frame_equal(old, alone)
    assert none.empty
    whole = pd.concat([old, new])
    assert [*whole["trial"]] == [*range(len(stages[1][1]))]
    assert not whole.duplicated(["configuration", "federation", "seed"]).any()
    columns = [name for name in stages[1][1] if name not in ("trial", "configuration")]
    assert {*map(repr, grid.trial_rows(whole[columns]))} == {
        *map(repr, grid.trial_rows(stages[1][1][columns]))
    }
    # a configuration has its number in all stages
    assert (whole.groupby("configuration")["kdk.epsilon"].nunique() <= 1).all()
    assert (whole.groupby("configuration").size() == 2 * 3).all()
    with refused("has 30 trials that this config leaves out", "choose another --workdir"):
        grid.added([*stages, stages[0]])
    wire = {"data": msgspec.structs.replace(stages[0][0].data, name="wire")}
    fewer = msgspec.structs.replace(stages[0][0], **wire), stages[0][1]
    with refused("name all recordings that it has, in --wire and --after"):
        grid.added([*stages, fewer])


# what config_misuses_test refuses by the public function is not listed again
BAD = [
    ({"federations": ("no_split",), "grid": {"x": {"gafm": {"delta": 0.1}}}}, "grid.x", "'split'"),
    ({"grid": {"x": {"noise": {"scale": 10**400}}}}, "noise.scale=1000", "out of range"),
    ({"grid": {"x": {"noise": {"scale": (1, 1.0)}}}}, "grid.x.noise.scale names 1.0", "leave one"),
    ({"grid": {"x": {"noise": {"scale": 1, "law": ({},)}}}}, "grid.x.noise.law={}", "give a text"),
    ({"grid": {"x": {"cae": {"confusion": 1, "width": 8.0}}}}, "width=8.0", "whole"),
    ({"grid": {"x": {"model": {"top_hidden": (0,)}}}}, "grid.x.model.top_hidden=(0,)", "from 1"),
    ({"grid": {"x": {"model": {"cut": 2}}}}, "config.grid.x.model 'cut'", "top_hidden"),
    ({"grid": {"x": {"model": {"top": "mlpp"}}}}, "mlpp", "did you mean 'mlp'"),
    ({"grid": {"x": {"model": "mlp"}}}, "config.grid.x.model='mlp'", "group of fields"),
    ({"attacks": {"passive": {"known": (20, 20)}}}, "attacks.passive.known names 20", "leave one"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD)
def test_bad_input_is_one_line_with_the_value_and_the_remedy(changes, value, remedy):
    with refused(value, remedy):
        parse(tiny(**changes))


# absurd sizes are refused before anything is built

THOUSAND = tuple(range(1, 1001))
SHARES = tuple(i / 1000 for i in range(1000))
WIDE = {"x": {"kdk": {"epsilon": SHARES, "k": THOUSAND}, "noise": {"scale": THOUSAND}}}

# changes, the field, what it makes, the limit
BEYOND = [
    ({"training.epochs": 10**9}, "config.training.epochs=1000000000", "", "1,000,000"),
    ({"grid": WIDE}, "config.grid ", "2,000,000,000 trials", "50,000"),
    ({"seeds": 9000}, "config.grid ", "54,000 trials of 9,000 seeds", "50,000"),
    (
        {"attacks": {"passive": {"known": THOUSAND, "ema": SHARES}}},
        *("config.attacks ", "1,000,000 attacks", "10,000"),
    ),
    ({"attacks": {"passive": {"steps": 10**9}}}, "config.attacks.passive.steps", "", "10,000,000"),
]


@pytest.mark.parametrize(("changes", "field", "product", "limit"), BEYOND)
def test_what_is_beyond_a_limit_is_refused_in_one_line(changes, field, product, limit):
    with refused(field, product, f"beyond the limit of {limit}", "--beyond_limits"):
        parse(tiny(**changes))  # what is refused later than at once never ends


def test_without_limits_nothing_is_refused_but_what_no_program_can_hold():
    assert parse(tiny(seeds=9000), beyond_limits=True).seeds == 9000
    with refused("=2147483648", "2,147,483,647"):
        parse(tiny(attacks={"passive": {"steps": 2**31}}), beyond_limits=True)


def test_trials_and_programs_of_all_federations_are_counted_before_they_are_built(monkeypatch):
    made, laws = parse(tiny()), {"scale": 0.1, "law": ("laplace", "gaussian")}
    monkeypatch.setitem(grid.LIMITS, "trials", 23)
    grid.check_trials(made, BOTH[:1])
    with refused("24 trials of 2 seeds, beyond the limit of 23", "--beyond_limits"):
        plan.make_plan(made)
    monkeypatch.setitem(grid.LIMITS, "trials", 50)
    monkeypatch.setitem(grid.LIMITS, "programs", 3)
    with refused("config.grid makes 4 programs", "--beyond_limits"):
        some = parse(tiny(grid={"x": {"noise": laws}}))
        grouping.check_programs(some, HALVES, grid.trials(some, BOTH))
    grouping.check_programs(made, HALVES, grid.trials(made, BOTH))  # its chains share programs


def test_a_stored_sweep_is_read_whatever_its_size(tmp_path):
    old = {**parse(tiny()).stored, "seeds": 20_000}
    with pytest.raises(UserError):
        parse(old)
    nothing = store.StoredSweep(
        tmp_path, {"config": old, "attacks": {}}, pd.DataFrame(), pd.DataFrame()
    )
    assert grid.experiment_of(nothing).seeds == 20_000


def test_seeds_whose_rows_do_not_fit_into_memory_are_refused_before_they_are_divided(monkeypatch):
    monkeypatch.setattr(plan, "free_memory", lambda: 1e6)
    with refused("config.seeds=500, a division of 1,797 rows each, needs", "--beyond_limits"):
        plan_of(tiny(seeds=500))
