"""What users get wrong in a config: each is one line with the value and what to do, and nothing is written."""

import itertools
import math

import pytest
from ml_collections import ConfigDict

import vfljax
from tests.refusals import line_of, refused

# the fields that are wrong, the value or name that the line shows, and a word of the remedy
MISUSES = {
    "epochs as text": ({"training": {"epochs": "ten"}}, "'ten'", "whole number"),
    "half an epoch": ({"training": {"epochs": 2.5}}, "2.5", "whole number"),
    "no epochs": ({"training": {"epochs": 0}}, "=0", "from 1 to"),
    "epochs that are nobody's": ({"training": {"epochs": None}}, "None", "whole number"),
    "a rate as text": ({"training": {"learning_rate": "fast"}}, "'fast'", "a number"),
    "a negative rate": ({"training": {"learning_rate": -0.1}}, "-0.1", "from 0 to"),
    "a rate that is no number": ({"training": {"learning_rate": math.nan}}, "nan", "a number"),
    "an infinite rate": ({"training": {"learning_rate": math.inf}}, "inf", "to 1e+30"),
    "no rate at all": ({"training": {"learning_rate": ()}}, "learning_rate=()", "give"),
    "a rate twice": ({"training": {"learning_rate": (0.1, 0.1)}}, "0.1", "leave one of them out"),
    "an unknown optimizer": ({"training": {"optimizer": "adamw"}}, "'adamw'", "'adam'"),
    "a flag as a text": ({"training": {"drop_last": "no"}}, "'no'", "bool"),
    "a batch of none": ({"training": {"batch_size": 0}}, "=0", "from 1 to"),
    "an epoch that is not trained": (
        {"training": {"epochs": 3, "record": (7,)}},
        "7",
        "choose 0 to 2",
    ),
    "an abbreviation": (
        {"training": {"lr": 1}},
        "field 'training.lr': did",
        "'training.learning_rate'?",
    ),
    "a field of another group": ({"batch_size": 8}, "'batch_size'", "'training.batch_size'"),
    "a typo in a group": ({"trainning": {"epochs": 3}}, "'trainning'", "'training'"),
    "a typo two levels down": ({"model": {"hiden": (8,)}}, "'model.hiden'", "'model.hidden'"),
    "a group that is a number": ({"training": 3}, "training=3", "epochs"),
    "a number that is a group": ({"seeds": {"first": 1}}, "first", "whole number"),
    "no seeds": ({"seeds": 0}, "config.seeds=0", "from 1 to"),
    "seeds as a list": ({"seeds": [0, 1]}, "(0, 1)", "whole number"),
    "a negative first seed": ({"first_seed": -1}, "config.first_seed=-1", "from 0 to"),
    "an empty grid": ({"grid": {}}, "config.grid is empty", "undefended"),
    "a grid that is a list": ({"grid": ["noise"]}, "config.grid=('noise',)", "group"),
    "a method that is a text": ({"grid": {"a": "noise"}}, "config.grid.a='noise'", "{defense"),
    "an unknown defense": (
        {"grid": {"a": {"nois": {"scale": 1}}}},
        "'nois'",
        "did you mean 'noise'",
    ),
    "an unknown knob": ({"grid": {"a": {"noise": {"scael": 1}}}}, "'scael'", "'scale'"),
    "a knob that is missing": ({"grid": {"a": {"noise": {}}}}, "gives no scale", "name its value"),
    "a knob without values": (
        {"grid": {"a": {"noise": {"scale": ()}}}},
        "scale is empty",
        "at least one",
    ),
    "a knob as text": ({"grid": {"a": {"noise": {"scale": "big"}}}}, "'big'", "is no number"),
    "a knob out of range": ({"grid": {"a": {"noise": {"scale": -1.0}}}}, "-1.0", "from 0 to"),
    "a knob that is NaN": ({"grid": {"a": {"noise": {"scale": math.nan}}}}, "nan", "give"),
    "epsilon beyond 1": (
        {"grid": {"a": {"kdk": {"epsilon": 1.5, "k": 1}}}},
        "epsilon=1.5",
        "from 0 to 1",
    ),
    "half a k": ({"grid": {"a": {"kdk": {"epsilon": 0.5, "k": 1.5}}}}, "1.5", "whole number"),
    "an unknown law": ({"grid": {"a": {"noise": {"scale": 1, "law": "x"}}}}, "'x'", "laplace"),
    "knobs that are no group": ({"grid": {"a": {"noise": 0.1}}}, "0.1", "noise"),
    "a plugin that is not in use": ({"grid": {"a": {"mine:x": {}}}}, "mine:x", "--plugin=mine"),
    "an unknown attack": ({"attacks": {"pasive": {}}}, "'pasive'", "did you mean 'passive'"),
    "attacks as a list": ({"attacks": ["norm"]}, "config.attacks=('norm',)", "group"),
    "an unknown option": ({"attacks": {"direct": {"rul": "x"}}}, "'rul'", "'rule'"),
    "an option that means nothing": (
        {"attacks": {"direct": {"rule": "any"}}},
        "rule='any'",
        "most_negative",
    ),
    "labels below none": ({"attacks": {"passive": {"known": -5}}}, "known=-5", "from 0 to"),
    "more labels than rows": ({"attacks": {"passive": {"known": 10**6}}}, "1000000", "up to all"),
    "an unknown data set": ({"data": {"name": "mnist"}}, "'mnist'", "choose"),
    "rows beyond the data": ({"data": {"train": 5000}}, "[5000, ", "at most all rows"),
    "an unknown scaling": ({"data": {"scaling": "minmx"}}, "'minmx'", "'minmax'"),
    "columns that do not exist": (
        {"data": {"name": "breast_cancer"}, "parties": {"columns": (("column 30",), ("*",))}},
        "'column 30'",
        "'column 3'",
    ),
    "columns of an image": ({"parties": {"columns": (("a",), ("*",))}}, "digits", "shares"),
    "shares for one party of two": ({"parties": {"shares": (1,)}}, "(1.0,)", "2 parties"),
    "no passive party": ({"parties": {"passive": 0}}, "=0", "from 1 to"),
    "a malicious party that is not there": ({"malicious": {"parties": ((3,),)}}, "[3]", "0..0"),
    "an unknown network": ({"model": {"bottom": "resnet9"}}, "'resnet9'", "'resnet"),
    "a width as text": ({"model": {"hidden": ("64",)}}, "'64'", "whole"),
    "an unknown federation": (
        {"federations": ("splitt",)},
        "'splitt'",
        "one of malicious, no_split, split",
    ),
    "a goal beyond one": ({"goal": {"max_leak": 60}}, "60", "from 0 to 1"),
    "a table that no paper has": ({"reproduces": {"table": "gafm/99"}}, "gafm/99", "choose"),
}


KINDS = itertools.cycle((dict, ConfigDict))


@pytest.mark.parametrize(("misuse", "kind"), [*zip(MISUSES, KINDS, strict=False)])
def test_a_misuse_of_a_config_is_one_line_and_nothing_is_written(misuse, kind, tmp_path):
    fields, value, remedy = MISUSES[misuse]
    with refused(value, remedy):
        vfljax.run_sweep(kind(fields), tmp_path / "w", say=lambda text: None)
    assert not list(tmp_path.iterdir())


def test_what_is_no_config_is_one_line(tmp_path):
    for config in (3, [("seeds", 3)]):
        line = line_of(lambda config=config: vfljax.run_sweep(config, tmp_path / "w"))
        assert line.startswith("config is of type")
        assert "give a mapping of fields, or the path of a config file" in line
