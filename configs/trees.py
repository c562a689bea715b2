"""The grid of an audit of boosted trees: how they grow, and the defenses with their strengths, weak ones first.

    vfljax audit --trees --data=table.csv --label=y --parties="bank: AGE; telco: *" --workdir=runs/trees
    vfljax audit --trees --trees_config=my_trees.py ...  # a copy of this file, with other numbers

It is no config of `python -m launch.sweep`: nothing here is trained by gradient descent. ``boosting`` and the
values of a method in ``grid`` are fields of ``vfljax.federation.trees.Boosting``, which explains them. A tuple
is an axis, and several fields of one method are combined. 20 rounds of 3 levels are few; with more a party is
told of more nodes.
"""


def get_config():
    return {
        "boosting": {"rounds": 20, "depth": 3, "learning_rate": 0.3},
        "grid": {
            "first_trees": {"alone": (1, 5, 10)},  # rounds
            "purity": {"cover": (0.02, 0.05, 0.1)},  # share of the rows
            "label_dp": {
                "epsilon": (8.0, 2.0, 0.5)
            },  # the strengths that an audit of networks tries
            "fewer_levels": {"depth": (2, 1)},
        },
    }
