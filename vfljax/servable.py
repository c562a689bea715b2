"""What a stored sweep can serve: the settings an attack can be run on, or one line why there are none."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import store
from vfljax.attacks.core import CLEAN, Attack
from vfljax.config import recorded_epochs
from vfljax.inside import names
from vfljax.lab import Lab, plain, weight_shapes
from vfljax.suite import Form, kind, make_attack


def servable(form: Form, lab: Lab, sweep: store.Sweep) -> tuple[Attack, list[dict], str]:
    """The attack, the stored settings it can be run on, or why there are none."""
    num_classes = lab.dataset.num_classes
    spec = lab.groups[0].spec
    attack = make_attack(form, tuple(spec.bottoms[p] for p in form.attackers), num_classes)
    columns = ["setting", "seed", "structure", "status", "shard", "lane"]
    rows = sweep.results.select(columns).to_pylist() if sweep.results.num_rows else []
    rows = [row for row in rows if kind(row["structure"]) == attack.structure]
    recorded = recorded_epochs(sweep.config)
    count = len(lab.splits[0].train)
    if attack.binary and num_classes > 2:
        return attack, [], f"defined for two classes, {lab.dataset.name} has {num_classes}"
    if not rows:
        reason = (
            f"it needs runs of the structure {attack.structure!r} and this sweep trained none: add "
            f"{form.name!r} to config.attacks and train in a new workdir"
        )
        return attack, [], reason
    if attack.epoch >= 0 and attack.epoch not in recorded:
        reason = (
            f"it reads epoch {attack.epoch} and this sweep recorded {recorded}: name it in "
            "config.training.record and train in a new workdir"
        )
        return attack, [], reason
    if attack.inside not in ("", CLEAN):
        found = layers(lab)
        if attack.inside not in found:
            reason = (
                f"there is no layer {attack.inside!r} in every model of the sweep: choose one of "
                f"{', '.join(found)}"
            )
            return attack, [], reason
    smallest = int(
        min(
            np.bincount(lab.dataset.labels[s.train], minlength=num_classes).min()
            for s in lab.splits
        )
    )
    for point in form.knobs:
        known = point.get("known", 0)
        reason = ""
        if "known" in point and known < num_classes:
            reason = f"known={known:g} labels are fewer than the {num_classes} classes"
        elif known > count:
            reason = f"known={known:g} labels are more than the {count} training rows"
        elif known < count and known > num_classes * smallest:
            reason = (
                f"known={known:g} labels ask for {-(-known // num_classes):g} of each class and the "
                f"rarest has {smallest} training rows: ask for at most {num_classes * smallest}, "
                f"or for all {count}"
            )
        if reason:
            return attack, [], reason
    return attack, rows, ""


def layers(lab: Lab) -> list[str]:
    """The layers that all split models of the sweep have (an arm may have a top model of its own)."""
    columns = tuple(
        jax.ShapeDtypeStruct((2, *x.shape[1:]), jnp.float32) for x in lab.table.features
    )
    found = []
    for spec in dict.fromkeys(plain(g.spec) for g in lab.groups if g.spec.top is not None):
        initial = weight_shapes(spec, lab)
        one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), initial)
        found.append(names(spec, one, columns))
    return [name for name in found[0] if all(name in other for other in found)]
