"""Makes the config of the sweep that recordings are stored as."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax import attacks, tasks
from vfljax.attacks.learners import MANY_ROWS
from vfljax.auditing import suite
from vfljax.auditing.wires_agreement import Checked
from vfljax.auditing.wires_request import Recorded, WireRequest
from vfljax.config import as_axis
from vfljax.datasets.bins import spelled
from vfljax.datasets.strata import strata
from vfljax.types import NO_SPLIT

UNEQUAL = (
    "Batches have not all the same size ({}): attacks that read which rows shared one are not run."
)
CUT = "Labels are numbers, and classes are made of them by quantiles of all runs: {}."
LABEL_PARTY = "the label party"


def config_of(request: WireRequest, found: Checked) -> dict[str, Any]:
    """Returns the config of the sweep."""
    first, cut, runs = found.first, found.cut, request.bare.runs
    passive, classes, epochs = len(first.parties), first.classes, found.epochs
    known = request.known or len(first.known_rows)
    if not known and first.labels is not None:
        drawn = strata(first.labels)
        known = suite.known_labels(drawn, int(drawn.max()) + 1)
    paths = [str(pathlib.Path(path).resolve()) for path in runs]
    options_of_data: dict[str, Any] = {"runs": tuple(paths[1:])}
    if cut is not None:
        options_of_data["bins"] = request.bins
    # the scores of trees are added up as logits are without a top model
    federation = request.federation if first.trees is None else NO_SPLIT
    attacked = (suite.SUITES if first.trees is None else suite.TREES)[tasks.of(classes).name]
    attacked = {name: {**of, **request.knobs.get(name, {})} for name, of in attacked.items()}
    options = suite.suited(attacked, (federation,), known, classes)
    names = request.attacks or [n for n in options if not attacks.TABLE[n].whole_batches]
    if not known:  # attacks that know labels are left out
        names = [n for n in names if "known" not in options.get(n, {})]
    canaries = (first.shape[1] - len(first.known_rows)) // 2  # the other half fits the proxy
    values = {
        "name": f"{pathlib.Path(runs[0]).stem}: a recorded exchange",
        "notes": (
            "The federation was trained elsewhere; its exchange was recorded, and nothing was trained here.",
            *([] if cut is None else [CUT.format(", ".join(map(spelled, cut)))]),
            *([] if first.equal_batches else [UNEQUAL.format(first.batch_size)]),
        ),
        "seeds": len(runs),
        "data": {"name": "wire", "dir": paths[0], "options": options_of_data},
        "parties": {
            "passive": passive,
            "label_features": False,
            "columns": tuple((f"party {p} column *",) for p in range(passive)),
            "names": (*first.names, LABEL_PARTY) if first.names else (),
        },
        "model": suite.model(classes) | {"cut": first.shape[2], "top": "mlp", "top_hidden": ()},
        "training": {"epochs": epochs[-1] + 1, "batch_size": first.batch_size, "record": epochs},
        "known_draws": 1 if len(first.known_rows) or first.shape[1] > MANY_ROWS else suite.DRAWS,
        "attackers": tuple((p,) for p in range(passive)),
        "federations": (federation,),
        "grid": {
            suite.UNDEFENDED: {},
            **{m: {name: _axes(request.methods[m])} for m, name in request.chains.items()},
        },
        "attacks": {name: _of_epochs(options.get(name, {}), epochs) for name in names},
        **({"canaries": canaries, "canary_labels": "observed"} if request.observed else {}),
    }
    parties = {**values["parties"], **request.fields.get("parties", {})}
    return {**values, **request.fields, "parties": parties}


def _axes(points: Sequence[Recorded]) -> dict[str, tuple[float, ...]]:
    """Returns the values of each knob of a method, whose operating points are all combinations of them."""
    return {
        knob: tuple(dict.fromkeys(point.knobs[knob] for point in points))
        for knob in points[0].knobs
    }


def _of_epochs(options: Mapping[str, Any], epochs: Sequence[int]) -> dict[str, Any]:
    """Returns the options of an attack, without epochs that were not recorded."""
    values = as_axis(options.get("epoch", ()))
    kept = tuple(v for v in values if v in (-1, *epochs) or isinstance(v, str))
    rest = {name: axis for name, axis in options.items() if name != "epoch"}
    return {**rest, "epoch": kept} if kept else rest
