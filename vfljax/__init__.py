"""vfljax: label leakage in vertical federated learning. This is the map of the package.

    federation/      one batch in seven sentences (``protocol``, read it first), optimizers, malicious parties,
                     teachers of the label party, and a trial trained epoch by epoch
    models/          the parties' networks, and a party as two pure functions
    defenses/ attacks/ datasets/    visible tables, like models/: a new member is one file and one row
    plugins/         rows of a user's own in those tables
    contract/        what every row promises, as functions for plugins and for tests
    sweep/           a config made concrete and its trials trained: ``experiment`` parses it, ``grid`` groups
                     trials by program, ``plan`` puts data on the device, ``train`` trains
    store/           a sweep on disk
    attacking/       a stored sweep attacked: ``view`` is what attackers see, and only in ``scoring`` do true
                     labels meet an attack's scores
    launching/       a sweep trained and attacked, here or in jobs elsewhere
    report/          what leaks and what it costs, judged once per configuration, then shown
    papers/          the numbers that papers print, and ours compared with them
    auditing/        a user's table surveyed, planned, trained and attacked; a wire; an entry of LeakBench
    library/         what Python programs and notebooks call
    cli/             the commands
    benchmark/       speed, one file per suite

    types.py         records, symbols and the glossary       errors.py      one line for a user's mistake
    config.py        every field and its default             metrics.py     accuracy, AUC, leak
    machine.py       devices, memory, compiled programs      keys.py        random keys by name

Reading order: README, ``federation.protocol``, one defense (``defenses.kdk``), one attack (``attacks.direct``),
``federation.training``, ``sweep.experiment``, ``sweep.grid``, ``sweep.train``, ``attacking.view``,
``attacking.run``, ``report``.

Data flows one way: config -> Experiment -> Plan -> training -> store -> View -> attack -> scores -> report.
Attacks and notebooks read what was trained from disk.

Decisions and their reasons:

Structure is static and numbers are arrays. A thousand values of a knob therefore compile once. Honest and
malicious trials share a program, because each party's gamma and strength of its upload are numbers, and 0 is
honest. Undefended trials join the first chain whose neutral knobs change nothing.

A trial's keys come from its seed alone. Trials of one seed see the same batches and initial weights, so their
differences are paired. A teacher depends on the seed and on the labels that it may see.

An attack runs on every federation that it is defined on and that was trained. What is trained follows from the
attacks' first federations, so that trials keep their numbers when an attack learns to run on another.

Leak is the AUC for two classes and balanced top-1 for more. The strongest attack has the highest mean over
seeds, and the local-only baseline is a candidate. Verdicts rest on the limits of all attacks, and operating
points must keep the utility on validation rows. With fewer than three seeds there is no verdict.

Shards are independent, and doing one twice changes nothing. The members of a batch and the host devices stay
those of the plan, so that figures do not depend on where they are computed.

One jitted call trains one epoch of every trial of a shard; progress, recording and saves happen between calls.
Convolutions are matrix products on a CPU, where vmapped ones lose their threads, and XLA's own elsewhere.

A party reads one float array: pixels, numbers, and codes and token ids as whole numbers, which float32 holds
exactly below 2^24. Scales, missing numbers and unseen categories follow each seed's training rows.

What does not exist, cannot be meant or does not fit into memory and disk is refused before anything is written.
A stored sweep is read whatever would be refused of a new one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vfljax import attacks, config, contract, datasets, defenses, models, plugins, store
    from vfljax.defenses import chain
    from vfljax.library.forms import VERDICTS, compare
    from vfljax.library.sweeps import attack_wire, audit, load, run_sweep
    from vfljax.library.tuning import tune
    from vfljax.machine import use_this_machine

__all__ = [
    "VERDICTS",
    "attack_wire",
    "attacks",
    "audit",
    "chain",
    "compare",
    "config",
    "contract",
    "datasets",
    "defenses",
    "load",
    "models",
    "plugins",
    "run_sweep",
    "store",
    "tune",
    "use_this_machine",
]

# public names that are not modules, and where each is defined
_NAMES = {
    "VERDICTS": "vfljax.library.forms",
    "audit": "vfljax.library.sweeps",
    "chain": "vfljax.defenses",
    "compare": "vfljax.library.forms",
    "load": "vfljax.library.sweeps",
    "attack_wire": "vfljax.library.sweeps",
    "run_sweep": "vfljax.library.sweeps",
    "tune": "vfljax.library.tuning",
    "use_this_machine": "vfljax.machine",
}


def __getattr__(name: str) -> Any:
    """Public names resolve on first use (PEP 562), so that importing vfljax costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("vfljax")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in __all__:
        return importlib.import_module(f"vfljax.{name}")
    raise AttributeError(f"module 'vfljax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
