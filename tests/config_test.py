"""Bad input: one clear line that names the value and the remedy, before anything is trained."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sweeps import tiny
from vfljax import lab
from vfljax.config import DEFAULT, differences, ordered, resolve
from vfljax.errors import UserError


def test_an_empty_config_is_the_default():
    resolved = resolve({})
    assert resolved["grid"] == {"undefended": {}}
    assert resolved["training"]["epochs"] == DEFAULT["training"]["epochs"]


def test_listing_order_is_kept_at_every_level():
    config = ordered({"grid": {"b": {"noise": {"scale": 1}, "kdk": {}}, "a": {}}})
    assert list(config.grid) == ["b", "a"]
    assert list(config.grid.b) == ["noise", "kdk"]
    assert list(resolve(config)["grid"]["b"]) == ["noise", "kdk"]


CANCER = {"data.name": "breast_cancer", "data.train": 300, "data.validation": 100, "data.test": 100}

BAD = [
    ({"training.epoch": 3}, "training.epoch", "training.epochs"),
    ({"grid": {"x": {"kdkk": {}}}}, "kdkk", "did you mean 'kdk'"),
    ({"grid": {"x": {"kdk": {"eps": 1, "k": 2}}}}, "eps", "epsilon"),
    ({"grid": {"x": {"kdk": {"epsilon": 1.5, "k": 2}}}}, "epsilon=1.5", "[0, 1]"),
    ({"grid": {"x": {"kdk": {"epsilon": -0.1, "k": 2}}}}, "epsilon=-0.1", "[0, 1]"),
    ({"grid": {"x": {"kdk": {"epsilon": float("nan"), "k": 2}}}}, "epsilon=nan", "[0, 1]"),
    ({"grid": {"x": {"kdk": {"epsilon": 0.5, "k": 0}}}}, "k=0", "at least 1"),
    ({"grid": {"x": {"kdk": {"epsilon": 0.5, "k": 11}}}}, "k=11", "10 classes"),
    ({"grid": {"x": {"kdk": {"epsilon": 0.5, "k": 2.5}}}}, "k=2.5", "whole number"),
    ({"grid": {"x": {"kdk": {"epsilon": 0.5}}}}, "gives no k", "name its value"),
    ({"grid": {"x": {"kdk": {"epsilon": (), "k": 2}}}}, "epsilon is empty", "at least one"),
    ({"grid": {"x": {"kdk": {"epsilon": "a", "k": 2}}}}, "'a'", "not a number"),
    ({"grid": {"x": {"kdk": {"epsilon": 0.5, "k": 2, "anchor": "b"}}}}, "anchor='b'", "teacher"),
    ({"grid": {"x": {"noise": {"scale": -1.0}}}}, "scale=-1.0", "at least 0"),
    ({"grid": {"x": {"compression": {"keep_rate": 2.0}}}}, "keep_rate=2.0", "[0, 1]"),
    ({"grid": {"x": {"dcor": {"alpha": -2}}}}, "alpha=-2", "at least 0"),
    ({"grid": {"x": {"marvell": {"power": 1.0}}}}, "2 classes", "has 10"),
    ({"grid": {"x": {"gafm": {"delta": 0.1}}}}, "2 classes", "has 10"),
    (
        {"grid": {"x": {"gafm": {"delta": 0.1}}}, **CANCER},
        "aggregation='concatenate'",
        "'mean'",
    ),
    (
        {
            "grid": {"x": {"gafm": {"delta": 0.1}}},
            **CANCER,
            "model.aggregation": "mean",
            "model.output": "sigmoid",
        },
        "(4, 4) wide",
        "config.model.cut=1",
    ),
    (
        {
            "grid": {"x": {"dcor": {"alpha": 0.1}, "gafm": {"delta": 0.1}}},
            **CANCER,
        },
        "gafm replaces",
        "list gafm before dcor",
    ),
    (
        {"grid": {"x": {"kdk": {"epsilon": 0.5, "k": 2}, "label_dp": {"epsilon": 1}}}},
        "label_dp replaces",
        "list label_dp before kdk",
    ),
    (
        {
            "grid": {"x": {"label_dp": {"epsilon": 1, "mechanism": "rr_with_prior"}}},
            "parties.label_features": False,
        },
        "needs a teacher",
        "randomized_response",
    ),
    (
        {"grid": {"x": {"label_dp": {"epsilon": 1, "prior": "teacher"}}}},
        "prior='teacher'",
        "guarantee='none'",
    ),
    ({"grid": {"x": {"label_dp": {"epsilon": -1}}}}, "epsilon=-1", "at least 0"),
    ({"grid": {"x": {"noise": {"scale": 1, "law": "cauchy"}}}}, "law='cauchy'", "laplace"),
    ({"grid": {"x": {"dcor": {"alpha": 1, "form": "log"}}}}, "form='log'", "log_squared"),
    ({"grid": {"x": {"ppdl": {"theta": 1.5}}}}, "theta=1.5", "[0, 1]"),
    ({"grid": {"x": {"ppdl": {"theta": 0.5, "on_exhaustion": "x"}}}}, "'x'", "zero, keep"),
    ({"grid": {"x": {"discrete_sgd": {"intervals": 0}}}}, "intervals=0", "[1, "),
    ({"grid": {"x": {"max_norm": {"scale": 1}}}}, "unknown knob of max_norm", "scale"),
    ({"grid": {"x": {"kdk": {"epsilon": 0.5, "k": float("inf")}}}}, "k=inf", "at least 1"),
    ({"grid": {"x": {"noise": {"scale": 10**400}}}}, "noise.scale", "too large"),
    ({"grid": {"x": {"noise": {"scale": float("inf")}}}}, "scale=inf", "at most 1e+30"),
    ({"grid": {"x": {"noise": {"scale": 1, "law": np.array(["laplace", "x"])}}}}, "'x'", "laplace"),
    ({"grid": [1, 2]}, "config.grid=[1, 2]", "{arm"),
    (
        {
            "grid": {"x": {"gafm": {"delta": 0.1}, "kdk": {"epsilon": 0.5, "k": 2}}},
            "model.aggregation": "mean",
            **CANCER,
        },
        "kdk has no effect beside it",
        "drop one",
    ),
    (
        {
            "grid": {"x": {"gafm": {"delta": 0.1}}},
            "model.aggregation": "sum",
            "model.output": "sigmoid",
            "model.cut": 1,
            **CANCER,
        },
        "'sum' of 2 parties",
        "'mean'",
    ),
    (
        {"grid": {"x": {"marvell": {"power": 0, "budget": "dynamic"}}}, **CANCER},
        "power=0",
        "grows by factors",
    ),
    ({"model.top": "generator"}, "2 classes", "'head'"),
    ({"model.top": "probability", **CANCER}, "(it is 4)", "config.model.cut=1"),
    (
        {
            **CANCER,
            "model.top": "probability",
            "model.cut": 1,
            "model.output": "sigmoid",
            "model.aggregation": "mean",
            "model.top_hidden": (3,),
        },
        "top_hidden=[3]",
        "must be ()",
    ),
    ({"model.weights": "torhc"}, "torhc", "did you mean 'torch'"),
    ({"model.hidden": (0,)}, "config.model.hidden=(0,)", "at least 1"),
    ({"model.hidden": (-3,)}, "config.model.hidden=(-3,)", "at least 1"),
    ({"model.top_hidden": (0,)}, "config.model.top_hidden=(0,)", "at least 1"),
    ({"model.top_hidden": (-2,)}, "config.model.top_hidden=(-2,)", "at least 1"),
    ({"model.top_hidden": ("a",)}, "config.model.top_hidden=('a',)", "whole numbers"),
    ({"model.top_hidden": (2.5,)}, "config.model.top_hidden=(2.5,)", "whole numbers"),
    ({"grid": {"x": {"model": {"top_hidden": (0,)}}}}, "grid.x.model.top_hidden=(0,)", "at least"),
    ({"model.options": {"dropout": 1.5}}, "config.model.options.dropout=1.5", "[0, 1)"),
    ({"teacher.hidden": (0,)}, "config.teacher.hidden=(0,)", "at least 1"),
    ({"teacher.options": {"dropout": -1.0}}, "config.teacher.options.dropout=-1.0", "[0, 1)"),
    ({"data.scaling_rows": "some"}, "'some'", "train, all"),
    ({"grid": {"x": {"model": {"tops": "mlp"}}}}, "'tops'", "did you mean 'top'"),
    ({"grid": {"x": {"model": {"cut": 2}}}}, "field of config.grid.x.model 'cut'", "top_hidden"),
    ({"grid": {"x": {"model": {"top_hidden": 3}}}}, "config.grid.x.model.top_hidden=3", "tuple"),
    ({"grid": {"x": {"model": {"top": "mlpp"}}}}, "mlpp", "did you mean 'mlp'"),
    ({"grid": {"x": {"model": "mlp"}}}, "config.grid.x.model='mlp'", "group of fields"),
    ({"model.output": "sigmoidd"}, "sigmoidd", "did you mean 'sigmoid'"),
    ({"grid": {"x": 3}}, "config.grid.x=3", "{defense"),
    ({"training.record": (0, 3)}, "epoch 3", "0 to 2"),
    ({"grid": {}}, "config.grid is empty", "undefended"),
    ({"attacks": {"pasive": {}}}, "pasive", "did you mean 'passive'"),
    ({"attacks": {"passive": {"know": 3}}}, "know", "known"),
    ({"attacks": {"passive": {"known": -1}}}, "known=-1", ">= 0"),
    ({"attacks": {"passive": {"layers": 9}}}, "layers=9", "1 to 5"),
    ({"attacks": {"passive": {"steps": 2.5}}}, "steps=2.5", "whole number"),
    ({"attacks": {"passive": {"batch_size": 1}}}, "batch_size=1", "2 or more"),
    ({"attacks": {"passive": {"finetune_bottom": "no"}}}, "'no'", "True or False"),
    ({"attacks": {"passive": {"temperature": 0}}}, "temperature=0", ">= 0.001"),
    ({"attacks": {"passive": {"ema": 1.5}}}, "ema=1.5", "<= 1"),
    ({"attacks": {"passive": {"known": float("inf")}}}, "known=inf", ">= 0"),
    ({"attackers": ()}, "attackers=()", "names nobody"),
    ({"attacks": 5}, "config.attacks=5", "{attack"),
    ({"attacks": {"direct": {"rule": "best"}}}, "rule='best'", "most_negative"),
    ({"seeds": 0}, "config.seeds=0", "at least 1"),
    ({"seeds": "three"}, "config.seeds='three'", "int"),
    ({"training.batch_size": 0}, "batch_size=0", "at least 1"),
    ({"training.learning_rate": -1.0}, "learning_rate=-1.0", "at least 0"),
    ({"training.optimizer": "sgdd"}, "sgdd", "did you mean 'sgd'"),
    (
        {"training.optimizer": "malicious_sgd", "attacks.active": {}},
        "malicious_sgd",
        "no malicious",
    ),
    ({"malicious.rule": "relaesed"}, "relaesed", "did you mean 'released'"),
    ({"malicious.rule": ("intended", "released")}, "malicious.rule", "type str"),
    (
        {"training.optimizer": "adam", "malicious.rule": "released", "attacks.active": {}},
        "rule='released'",
        "choose 'intended', or the optimizer 'sgd'",
    ),
    ({"training.evaluation": "relaesed"}, "relaesed", "did you mean 'released'"),
    ({"training.evaluation": "released"}, "data has 10", "'final'"),
    ({"training.scope": "some"}, "'some'", "passive"),
    ({"model.top": "tree"}, "tree", "head"),
    ({"model.bottom": "mlpp"}, "mlpp", "mlp"),
    ({"model.aggregation": "max"}, "max", "concatenate"),
    ({"data.name": "digit"}, "digit", "did you mean 'digits'"),
    ({"data.scaling": "log"}, "log", "standard"),
    ({"data.train": 5}, "[5, 160, 160]", "one row a class"),
    ({"data.train": 5000}, "[5000, 160, 160]", "at most all rows"),
    ({"malicious.parties": ((3,),)}, "[3]", "0..0"),
    ({"parties.passive": 9}, "10 parties", "fewer passive parties"),
    ({"training.class_weights": (0.3, 1.0)}, "[0.3, 1.0]", "one a class"),
    ({"training.class_weights": (0.0,) * 10}, "holds 0.0", "positive"),
    ({"training.milestones": ("a",)}, "holds 'a'", "give numbers"),
    ({"training.batch_size": 319}, "batch of 1 row", "drop_last"),
    ({"data": 3}, "config.data=3", "group of fields"),
    (
        {"parties.label_features": False, "grid": {"x": {"kdk": {"epsilon": 0.5, "k": 2}}}},
        "needs a teacher",
        "label_features=True",
    ),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD, ids=[str(b[0])[:60] for b in BAD])
def test_bad_input_is_one_line_with_the_value_and_the_remedy(changes, value, remedy):
    with pytest.raises(UserError) as error:
        lab.prepare(tiny(**changes))
    assert value in str(error.value)
    assert remedy in str(error.value)
    assert len(str(error.value).splitlines()) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(field=st.sampled_from(sorted(DEFAULT)), value=json_values)
def test_any_value_of_any_field_resolves_or_is_refused_in_one_line(field, value):
    try:
        assert field in resolve({field: value})
    except UserError as error:
        assert field in str(error)
        assert len(str(error).splitlines()) == 1


def test_differences_name_the_fields():
    a, b = resolve(tiny()), resolve(tiny(**{"seeds": 4, "training.epochs": 9}))
    assert differences(a, b) == ["seeds: 2 -> 4", "training.epochs: 3 -> 9"]
    assert differences(a, a) == []
