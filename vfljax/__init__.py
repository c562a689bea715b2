"""vfljax: label leakage in vertical federated learning. This is the map of the package.

    federation/      the protocol of one batch (``protocol``, read it first), optimizers, malicious parties,
                     teachers of the label party, and the training of a trial epoch by epoch
    models/          the parties' networks, and a party as two pure functions
    defenses/ attacks/ datasets/    tables, like models/: a new entry takes one file and one row
    plugins/         a user's own rows in those tables
    testing/         the contract that every row of the tables keeps, and what it is tried on
    config/          every field and its default (``records``), and how files and flags fill them
    sweep/           the training of a config's trials: ``grid`` makes the table of trials, ``grouping`` groups
                     it by program, ``plan`` puts data on the device, ``train`` trains
    store/           reading and writing a sweep on disk
    attack_runs/     attacks on a stored sweep: ``view`` builds what attackers see, only ``scoring`` compares
                     scores with true labels, ``cascade`` says which attacks cheaper ones settle
    scheduling/      the units of a sweep made in this process, and in others beside it
    report/          what leaks and what it costs, judged once per configuration, then shown
    recorder/        records a federation of any framework as a wire, with NumPy alone
    auditing/        the audit of a user's table, and attacks on a recorded wire
    api/             what Python programs and notebooks call, and the commands, with flags from its signatures

    tasks/           what labels are, classes or numbers: losses, leaks and utility as one record

    types.py         records, symbols and the glossary       errors.py      one-line errors for users
    switches.py      JAX's own switches                      metrics.py     accuracy, AUC, leak
    machine.py       devices, memory, compiled programs      keys.py        random keys by name

Public are the names of ``vfljax.__all__``, and the ``__all__`` of the modules among them and of
``defenses.core`` and ``attacks.core``. ``suite`` is ``auditing.suite``, and ``trees`` is ``federation.trees``.
All else is private and may change. ``analysis/reference/python.md`` lists the public names.

Reading order: README, ``federation.protocol``, one defense (``defenses.kdk``), one attack (``attacks.direct``),
``federation.training``, ``config``, ``sweep.grid``, ``sweep.train``, ``attack_runs.view``,
``attack_runs.run``, ``report``.

Data flows one way: Config -> trials -> Plan -> training -> store -> View -> attack -> scores -> report.
Attacks and notebooks read trained sweeps from disk.

Decisions and their reasons:

Structure is static and numbers are arrays. A thousand values of a knob therefore compile once. Honest and
malicious trials share a program, because each party's gamma and upload strength are numbers, and 0 is honest.
Undefended trials share the program of a chain of defenses with neutral knobs, and in small sweeps trials of
several such chains share one.

A trial's keys come from its seed alone. Trials of one seed see the same batches and initial weights, so their
differences are paired. A teacher depends on the seed and on the labels that it may see.

An attack runs on every trained federation that it is defined on. By default `split` and each attack's first
federation are trained, so that trials keep their numbers when an attack is extended to another federation.

Leak is the AUC for two classes, balanced top-1 for more, and concordance for numbers. In each run, a
configuration and a seed, the strongest attack counts, or the best local-only learner. Verdicts rest on
Student's limits over seeds, and operating points must keep the utility on validation rows. With fewer than
three seeds there is no verdict.

A sweep is a list of units, each stored whole and made by whichever process claims it first; making one twice
changes nothing. The plan fixes the members of a batch and the number of host devices, so that figures do not
depend on who makes it.

One jitted call trains one epoch of every trial of a shard; progress, recording and saves happen between calls.
Convolutions are matrix products on a CPU, where XLA runs vmapped ones on one thread, and XLA's own elsewhere.

A party reads one float32 array of pixels, numbers, category codes and token ids. float32 holds codes and ids
exactly below 2^24. Scales, missing numbers and unseen categories are decided by each seed's training rows.

A config that is invalid, or does not fit into memory and disk, is refused before anything is written. The
limits of new sweeps do not apply to a stored sweep.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vfljax import attacks, config, datasets, defenses, errors, models, plugins, testing, types
    from vfljax.api.attack import attack, attack_wire
    from vfljax.api.audit import audit, audit_trees
    from vfljax.api.data import data
    from vfljax.api.forms import VERDICTS, compare
    from vfljax.api.loading import load
    from vfljax.api.partitioned_table import partitioned_table
    from vfljax.api.sweep import run_sweep
    from vfljax.api.verify import verify
    from vfljax.auditing import suite
    from vfljax.defenses import chain
    from vfljax.federation import trees
    from vfljax.machine import use_this_machine
    from vfljax.recorder import Recorder

__all__ = [
    "VERDICTS",
    "Recorder",
    "attack",
    "attack_wire",
    "attacks",
    "audit",
    "audit_trees",
    "chain",
    "compare",
    "config",
    "data",
    "datasets",
    "defenses",
    "errors",
    "load",
    "models",
    "partitioned_table",
    "plugins",
    "run_sweep",
    "suite",
    "testing",
    "trees",
    "types",
    "use_this_machine",
    "verify",
]

# public names that are not modules of this package, and where each is defined
_MODULES = {"suite": "vfljax.auditing.suite", "trees": "vfljax.federation.trees"}
_NAMES = {
    "Recorder": "vfljax.recorder",
    "VERDICTS": "vfljax.api.forms",
    "attack": "vfljax.api.attack",
    "attack_wire": "vfljax.api.attack",
    "audit": "vfljax.api.audit",
    "audit_trees": "vfljax.api.audit",
    "chain": "vfljax.defenses",
    "compare": "vfljax.api.forms",
    "data": "vfljax.api.data",
    "load": "vfljax.api.loading",
    "partitioned_table": "vfljax.api.partitioned_table",
    "run_sweep": "vfljax.api.sweep",
    "use_this_machine": "vfljax.machine",
    "verify": "vfljax.api.verify",
}


def __getattr__(name: str) -> Any:
    """Public names resolve on first use (PEP 562), so that importing vfljax costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("vfljax")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in __all__:
        return importlib.import_module(f"vfljax.{name}")
    raise AttributeError(f"module 'vfljax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
