"""Absurd sizes and names are refused before anything is built, in one line with the remedy."""

import math

import pyarrow as pa
import pytest

from tests.refusals import line_of, refused
from tests.sweeps import plan_of, tiny
from vfljax import store
from vfljax.errors import UserError
from vfljax.sweep import grid, plan
from vfljax.sweep.experiment import changed, experiment_of, parse
from vfljax.sweep.limits import LIMITS, SizeLimits, lengths
from vfljax.types import Federation

THOUSAND = tuple(range(1, 1001))
SHARES = tuple(i / 1000 for i in range(1000))

# changes, field, its value or the product, the limit
BEYOND = [
    ({"seeds": 10**11}, "config.seeds=100,000,000,000 ", "", "10,000"),
    ({"first_seed": 10**5}, "config.first_seed=100,000 ", "", "10,000"),
    ({"seeds": 10**5000}, "config.seeds=about 10^5000 ", "", "10,000"),
    ({"training.epochs": 10**9}, "config.training.epochs=1,000,000,000 ", "", "1,000,000"),
    ({"teacher.epochs": 10**9}, "config.teacher.epochs=1,000,000,000 ", "", "1,000,000"),
    ({"parties.passive": 10**8}, "config.parties.passive=100,000,000 ", "", "1,000"),
    (
        {"grid": {"x": {"kdk": {"epsilon": SHARES, "k": THOUSAND}, "noise": {"scale": THOUSAND}}}},
        "config.grid.x.kdk.epsilon has 1,000 values",
        "2,000,000,000 trials",
        "50,000",
    ),
    (
        {"seeds": 9000, "training.learning_rate": (0.1, 0.2)},
        "config.seeds has 9,000 values",
        "108,000 trials",
        "50,000",
    ),
    (
        {"seeds": 300, "training.learning_rate": tuple(k / 1000 for k in range(1, 301))},
        *("config.seeds has 300 values", "540,000 trials", "50,000"),
    ),
    (
        {"grid": {f"a{i}": {} for i in range(30_000)}},
        "config.grid has 30,000 values",
        "60,000 trials",
        "50,000",
    ),
    (
        {"attacks": {"passive": {"known": THOUSAND, "ema": SHARES}}},
        "config.attacks.passive.known has 1,000 values",
        "1,000,000 attacks",
        "10,000",
    ),
    (
        {"attacks": {"passive": {"steps": 10**15}}},
        "config.attacks.passive.steps=1,000,000,000,000,000 ",
        "",
        "10,000,000",
    ),
    (
        {"attacks": {"probe": {"hidden": 10**9}}},
        "attacks.probe.hidden=1,000,000,000 ",
        "",
        "1,000,000",
    ),
]


@pytest.mark.parametrize(
    ("changes", "field", "product", "limit"), BEYOND, ids=[b[1] for b in BEYOND]
)
def test_what_is_beyond_a_limit_is_refused_in_one_line(changes, field, product, limit):
    with refused(field, product, f"beyond the limit of {limit}:", "--beyond_limits"):
        parse(tiny(**changes))  # what is refused later than at once never ends


def test_without_limits_nothing_is_refused_but_what_no_program_can_hold():
    methods = {f"a{i}": {} for i in range(17_000)}
    assert len(parse(tiny(grid=methods, seeds=3), SizeLimits.none()).methods) == 17_000
    for changes in ({"seeds": 2**31}, {"attacks": {"passive": {"steps": 2**31}}}):
        with pytest.raises(UserError, match="2,147,483,648 is too large: .* 2,147,483,647"):
            parse(tiny(**changes), SizeLimits.none())


def test_an_experiment_keeps_its_limits_when_it_is_changed():
    experiment = parse(tiny(), SizeLimits(seeds=5))
    with pytest.raises(UserError, match="config.seeds=6 is beyond the limit of 5"):
        changed(experiment, {"seeds": 6})
    assert parse(tiny()).limits == LIMITS


def test_federations_and_programs_are_counted_before_settings_are_built():
    experiment = parse(tiny(), SizeLimits(trials=24, programs=4))
    split, both = [Federation()], [Federation(), Federation(False)]
    grid.check_counts(experiment, split)
    for count, limits in ((24, SizeLimits(trials=23)), (6, SizeLimits(programs=5))):
        with pytest.raises(UserError, match=f"make {count} .*--beyond_limits"):
            grid.check_counts(parse(tiny(), limits), both)
    laws = {"x": {"noise": {"scale": (0.1, 0.2, 0.3), "law": ("laplace", "gaussian")}}}
    with pytest.raises(UserError, match=r"config.grid.x.noise.law has 2 values.* 4 programs"):
        grid.check_counts(parse(tiny(grid=laws), SizeLimits(programs=3)), both)


def test_a_plan_counts_before_it_builds(monkeypatch):
    def build(*arguments):
        raise AssertionError("trials were built")

    monkeypatch.setattr(grid, "trials", build)
    with pytest.raises(UserError, match="24 trials, beyond the limit of 23"):
        plan.make_plan(parse(tiny(), SizeLimits(trials=23)))


def test_a_stored_sweep_is_read_whatever_would_be_refused_of_a_new_one(tmp_path):
    config = parse(tiny()).stored
    old = {**config, "seeds": 20_000, "notes": [5]}
    old["grid"] = {"a/b $": {"noise": {"scale": [0.1, 0.1]}}}
    with pytest.raises(UserError):
        parse(old)
    nothing = pa.table({})
    experiment = experiment_of(
        store.StoredSweep(tmp_path, {"config": old, "attacks": {}}, nothing, nothing)
    )
    assert [method.name for method in experiment.methods] == ["a/b $"]
    assert changed(experiment, {"data.dir": "x"}).seeds == 20_000


def test_lengths_are_counted_without_building_a_product():
    chain = {"noise": {"scale": (1, 2), "law": "laplace"}, "model": {"top": "mlp"}}
    (method,) = parse(tiny(grid={"a": chain})).methods
    assert method.values == {"grid.a.noise.scale": [1, 2], "grid.a.noise.law": ["laplace"]}
    assert lengths("f", {"x": (), "y": [1, 2, 3]}) == {"f.x": 0, "f.y": 3}


def test_free_memory_and_disk_are_limits_too():
    with pytest.raises(UserError, match="it needs about 2.0 GB of disk and 1.0 GB is free: fewer"):
        SizeLimits().check_free("it", "disk", 2e9, 1e9, "fewer")
    SizeLimits().check_free("it", "disk", 2e9, math.inf, "fewer")
    SizeLimits.none().check_free("it", "disk", 2e9, 1e9, "fewer")


def test_seeds_whose_rows_do_not_fit_into_memory_are_refused_before_they_are_divided(monkeypatch):
    monkeypatch.setattr(plan, "free_memory", lambda: 1e6)
    with pytest.raises(UserError, match="config.seeds=500, a division of 1,797 rows each, needs"):
        plan_of(tiny(seeds=500))


# names and texts that a report could not show, and values that are named twice


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a/b", "'a/b' cannot be a file's name"),
        ("a\\b", "cannot be a file's name"),
        ("$x$", "'$x$' cannot be a file's name: choose printable characters without / \\ $"),
        ("", "'' cannot be a file's name"),
        (" a", "' a' cannot be a file's name"),
        ("a ", "'a ' cannot be a file's name"),
        (300 * "a", "has 300 characters (300 bytes): choose at most 60 (200 bytes)"),
        (60 * "\N{GRINNING FACE}", "has 60 characters (240 bytes)"),
        ("a\0", "holds the character '\\x00', which cannot be printed"),
        ("\ud800", "holds the character '\\ud800'"),
        ("\x1b[31mred", "holds the character '\\x1b'"),
        ("two\nlines", "holds the character '\\n'"),
        (5, "the method 5 is no text"),
        (None, "the method None is no text"),
    ],
)
def test_an_arm_s_name_must_be_a_file_s_and_a_figure_s_too(name, says):
    line = line_of(lambda: parse(tiny(grid={name: {}})))
    assert line.startswith("config.grid: the method ")
    assert says in line


@pytest.mark.parametrize("name", ["ε ≤ 0.1", "kdk+noise", "60 % (β)", 60 * "a", "混合", "a.b-c_d"])
def test_letters_of_any_script_are_fine(name):
    assert [method.name for method in parse(tiny(grid={name: {}}, name=name)).methods] == [name]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "\x1b[2J"}, "config.name '\\x1b[2J' holds the character"),
        ({"name": ""}, "config.name ''"),
        ({"parties.names": ("bank", "tel\nco")}, "config.parties.names: 'tel\\nco' holds the"),
        ({"name": 201 * "a"}, "at most 200"),
        ({"notes": (5,)}, "config.notes: 5 is no text"),
        ({"notes": ("fine", "a\0b")}, "config.notes: 'a\\x00b' holds"),
        ({"grid": {"x": {5: {}}}}, "unknown defense 5: choose from kdk"),
        ({"grid": {"x": {"noise": {5: 1.0}}}}, "unknown knob of noise 5: choose from scale"),
        ({"grid": {"x": {"model": {5: 1}}}}, "unknown field of config.grid.x.model 5"),
        ({"attacks": {5: {}}}, "unknown attack 5: choose from passive"),
    ],
)
def test_other_names_and_texts_are_checked_where_they_can_be_told(changes, says):
    assert says in line_of(lambda: parse(tiny(**changes)))


def test_a_note_may_have_lines():
    assert parse(tiny(notes=("one\n\ttwo",))).notes == ("one\n\ttwo",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"grid": {"x": {"noise": {"scale": (0.1, 0.2, 0.1)}}}}, "grid.x.noise.scale names 0.1"),
        ({"grid": {"x": {"noise": {"scale": (1, 1.0)}}}}, "grid.x.noise.scale names 1.0"),
        (
            {"grid": {"x": {"noise": {"scale": 1, "law": ("laplace", "laplace")}}}},
            "grid.x.noise.law names 'laplace'",
        ),
        ({"training.learning_rate": (0.1, 0.1)}, "training.learning_rate names 0.1"),
        ({"training.decay": (0, 0.0)}, "training.decay names 0.0"),
        ({"malicious.gamma": (2, 2)}, "malicious.gamma names 2"),
        (
            {"malicious.parties": ((0, 1), (1, 0)), "parties.passive": 2},
            "malicious.parties names (0, 1)",
        ),
        ({"attackers": ((0,), (0,))}, "attackers names (0,)"),
        ({"attacks": {"passive": {"known": (20, 20)}}}, "attacks.passive.known names 20"),
        ({"attacks": {"direct": {"rule": ("a", "a")}}}, "attacks.direct.rule names 'a'"),
    ],
)
def test_a_value_that_an_axis_names_twice_is_refused(changes, says):
    assert f"config.{says} twice: leave one of them out." in line_of(lambda: parse(tiny(**changes)))


def test_true_is_no_number_and_equal_values_of_other_axes_are_others():
    methods = {name: {"noise": {"scale": (0.1, 0.2)}} for name in ("a", "b")}
    attacks = {"passive": {"finetune_bottom": (False, True), "known": 20, "steps": 20}}
    assert len(parse(tiny(grid=methods, attacks=attacks)).methods) == 2
