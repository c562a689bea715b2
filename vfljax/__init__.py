"""vfljax: label leakage in vertical federated learning. The map of the house.

    protocol.py      one batch in seven sentences; read it first
    parties.py       a party's model as two pure functions; how embeddings are put together
    optimizers.py    each party's own optimizer; malicious.py is the one that differs
    training.py      one setting, trained: epochs as scans over the protocol's step
    last_layer.py    what a party's parameter gradients add up; recorded where a config asks
    teacher.py       the label party's teachers, trained before the federation starts
    config.py        config files: ``ordered``, every field and its default
    types.py errors.py keys.py rows.py metrics.py    the words every room uses
    running.py       ``run_sweep``, a sweep in one call, and its ``forecast``; ``auditing.frames`` has ``audit``
    machine.py       ``use_this_machine``: devices and the compile cache; ``offered``: the memory that sizes
                     of calls are chosen by where it is an accelerator's
    precision.py     products in bfloat16, where a config asks; everything else is float32

    defenses/ attacks/ models/ datasets/    the four visible tables; a new member is one file and one row
    plugins/         rows of one's own put into them, and what a stored sweep says of such rows
    contract/        what every row promises, as functions: for plugins and for tests
    sweep/           a config made concrete, and its settings trained: ``experiment`` parses the config
                     once, ``limits`` and ``naming`` refuse what nobody can have meant, ``grid`` groups
                     settings by program, ``plan`` puts data on the device and divides the work,
                     ``size`` says what that needs of memory and disk, ``forms`` says which
                     federations the attacks need, ``known`` how many labels attackers can
                     know, ``batch_layout`` runs one program over many settings, ``train`` trains them,
                     ``selection`` chooses Delta, ``background`` is where programs are compiled early
    store/           a sweep on disk; ``loading`` is all that a notebook needs
    attacking/       a stored sweep attacked: ``view`` is what an attacker sees, ``diagnostics`` what none
                     sees, ``baselines`` what it had without taking part, ``alone`` whoever takes none,
                     ``blocks`` as many settings as one call takes,
                     ``ahead`` compiles attacks while settings train,
                     ``rules`` what becomes of rows that an earlier rule of an attack made, and
                     ``scoring`` the one place where true labels meet an attack's scores
    launching/       shards trained and attacked elsewhere, by jobs of submitit or Ray: ``work`` is what a job
                     does, ``sending`` divides shards, waits, and asks again for those that failed
    report/          ``summary`` makes points, ``worst`` their worst cases, ``judging`` verdicts on them;
                     the others write them down
    papers/          the numbers that papers print, and how our runs compare with them; papers' claims
                     and figures; what a report adds for a sweep that is a run of a paper's table
    auditing/        a table of one's own: looked at, planned within a budget, trained and attacked as sweeps
    benchmark/       one file per suite

Reading order: README, protocol, one defense (``defenses.kdk``), one attack (``attacks.direct``),
training, ``sweep.experiment``, ``sweep.grid``, ``sweep.train``, ``attacking.view``, ``attacking.run``,
``report.summary``.

Data flows one way: config -> Experiment -> Plan -> training -> store -> View -> attack -> scores ->
scoring -> summary -> report. No arrow goes back: attacks and notebooks read what was trained from disk.

Decisions, and why:

Static things choose the structure of a program, and numbers are arrays. A thousand values of a knob
therefore compile once. Honest and malicious settings share a program, because the strength gamma of
each party is a number and 0 is honest. Undefended settings join the first chain whose neutral knobs
change nothing, so that epsilon = 0 equals undefended bit for bit and one program less is compiled.

A setting's keys come from its seed alone, never from its place in a grid. Settings of one seed see the
same batches and initial weights, so differences between them are paired.

A teacher depends on the seed and on the labels that it may see. There is one for each distinct pair:
one per seed without label DP, one per seed and epsilon with it.

An attack runs on every federation that it is defined on and that was trained, and its figures are keyed
by both. What is trained is derived from the attacks' first federations, so that settings keep their
numbers when an attack learns to run on another.

The scale of leakage is the AUC for two classes and balanced top-1 for more. The worst attack, and the
strength of a defense that keeps the accuracy on validation rows, are chosen on the other seeds and scored
on the one that is left out. A worst case belongs to a number of known labels, and staying away from all
federations with as many is a candidate. Verdicts choose nothing: they rest on limits of every attack. With
fewer than three seeds there are figures, chosen on one half of the rows and scored on the other, and no
verdict.

Shards are independent, and doing one twice changes nothing: elsewhere a job is the names of some shards,
and the store is their union. Settings mapped at once and host devices stay those that the sweep was planned
for, so that figures do not depend on where they are computed.

One jitted call trains one epoch of every setting of a shard. Progress, recording and saves happen
between calls. The order of rows, which all settings of a seed share, is made once outside them, for
all groups and shards.

Convolutions are matrix products on a CPU and XLA's own on accelerators, with the same parameters.
Vmapped over settings, XLA's become grouped convolutions, and inside a loop they lose their threads on
a CPU. There, settings of large networks run one after the other on each device, and those of small
networks together. Which is faster on a GPU has not been measured (``launch.benchmark --suite=gpu``).

A party reads one float array: images as pixels, codes and token ids as whole numbers, which float32
holds exactly below 2^24. A network that reads codes says so (``mixable = False``), and model
completion then mixes its embeddings at the cut instead of its inputs.

Missing numbers, unseen categories and scales are the business of each seed's training rows. A
category that no training row has reads 0.

A name, field, knob or option that does not exist is refused before anything is trained or written. So
is a size that nobody can have meant, by arithmetic on axes that are not built, and what does not fit
into the memory and disk that are free. A stored sweep is read whatever would be refused of a new one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vfljax import attacks, config, contract, datasets, defenses, models, plugins, store
    from vfljax.auditing.frames import audit
    from vfljax.defenses import chain
    from vfljax.launching.running import run_sweep
    from vfljax.machine import use_this_machine
    from vfljax.store import load

__all__ = [
    "attacks",
    "audit",
    "chain",
    "config",
    "contract",
    "datasets",
    "defenses",
    "load",
    "models",
    "plugins",
    "run_sweep",
    "store",
    "use_this_machine",
]

# public names that are not modules, and where each is defined
_NAMES = {
    "audit": "vfljax.auditing.frames",
    "chain": "vfljax.defenses",
    "load": "vfljax.store",
    "run_sweep": "vfljax.launching.running",
    "use_this_machine": "vfljax.machine",
}


def __getattr__(name: str) -> Any:
    """Public names resolve on first use (PEP 562), so that importing vfljax costs nothing."""
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in __all__:
        return importlib.import_module(f"vfljax.{name}")
    raise AttributeError(f"module 'vfljax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
