"""``vfljax.load`` and ``run_sweep``, and the ``Sweep`` that they return."""

from __future__ import annotations

import functools
import html
import os
import pathlib
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from ml_collections import ConfigDict

import vfljax
from vfljax import store
from vfljax.auditing import wires
from vfljax.config import Config, as_axis
from vfljax.errors import UserError, unknown, user_path
from vfljax.launching import running
from vfljax.library import forms
from vfljax.report import not_run, page, tables
from vfljax.report.judged import Judged, judged
from vfljax.sweep.grid import experiment_of, parse
from vfljax.sweep.plan import Plan

WIDTH = 110  # characters of a line of ``repr``


class Sweep(store.StoredSweep):
    """A stored sweep: its tables, its trials, and what the report concludes of it.

    ``results`` and ``attacks`` are Arrow tables of stored rows; ``trial`` reads one trial's arrays. In all
    frames ``configuration`` is the number of a configuration in ``results``.
    """

    def __repr__(self) -> str:
        lines = (f"{name}: {text}" for name, text in forms.about(self).items())
        return "\n".join(textwrap.shorten(line, WIDTH, placeholder=" ...") for line in lines)

    def _repr_html_(self) -> str:
        rows = (map(html.escape, row) for row in forms.about(self).items())
        return f"<table>{''.join(f'<tr><th>{k}</th><td>{v}</td></tr>' for k, v in rows)}</table>"

    @functools.cached_property
    def judged(self) -> Judged:
        """The frames of the sweep and its verdicts, of which the report is made.

        Raises:
          UserError: if no trial is finished.
        """
        if not self.results.num_rows:
            what = f"{self.workdir} has no finished trials yet"
            raise UserError(what, remedy="run `vfljax sweep` again")
        return judged(self, experiment_of(self))

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan by which the sweep was trained, for attacks by hand. Its data set is read again."""
        return running.stored_plan(self.workdir, unfinished=True)

    def frame(self) -> pd.DataFrame:
        """Returns ``results`` and ``attacks`` merged: a row per trial and attack, or per unattacked trial."""
        results = self.results.to_pandas().rename(columns={"seconds": "training_seconds"})
        if not self.attacks.num_rows:
            return results
        attacks = self.attacks.to_pandas()
        fresh = [c for c in attacks.columns if c == "trial" or c not in results.columns]
        return results.merge(attacks[fresh], on="trial", how="left")

    def verdicts(self, known: int | None = None) -> pd.DataFrame:
        """Returns a row for every configuration, with and without model splitting: verdict, cost, and leak.

        In each run (a configuration and a seed) the strongest attack that knows at most K labels counts, and
        limits are Student's over seeds. The columns that are read most:

            configuration, label   its number, and a text such as "kdk epsilon=.3 k=2"
            panel                  "split" or "no_split"
            known                  K
            leak                   what the strongest attack of each run reads; chance is 1/2, or 1/C
            e                      how much of it is beyond the best learner that needs no federation
            d                      the change of the leak to undefended
            verdict                a key of ``vfljax.VERDICTS``
            leader                 the attack that leads on most seeds
            utility, cost          accuracy or AUC on test rows, and what the defense costs
            share_kept             of the federation's gain over the label party alone
            chosen, recommended    whether it is its method's operating point; what to switch on

        leak, e, d, utility and others have limits that end in ``_lower`` and ``_upper``. All columns are
        described by ``vfljax.report.judge``, ``costs`` and ``judged``. Knobs ("kdk.epsilon") follow.

        Args:
          known: K; None: the largest number of labels that an attack of the sweep knows.
        """
        return forms.verdict_frame(self.judged, known)

    def leaks(self) -> pd.DataFrame:
        """Returns a row for every configuration, federation, attack and seed, with the attack's figures.

        ``leak`` is in the attack's own direction if it knows labels; ``label`` names the attack, and
        ``configuration_label`` the configuration. A planned row without a figure has NaN; if a cheaper attack
        settled it, so that it was not run, ``settled_by`` is that attack's label. All columns are described by
        ``vfljax.report.rows`` and ``vfljax.library.forms.leak_frame``.
        """
        return forms.leak_frame(self.judged)

    def attack(self, name: str, /, **settings: Any) -> pd.DataFrame:
        """Returns the rows of ``leaks`` of one attack, such as ``attack("direct", rule="most_negative")``.

        Args:
          name: of the attack.
          **settings: values that its options and numeric knobs must have; a KeyError lists those that exist.
        """
        return forms.attack_frame(self.judged, name, settings)

    def figure(self, name: str = "frontier") -> Figure:
        """Returns a figure of the report, in Matplotlib, by the name of its file, "heat_kdk" for example."""
        drawings = page.drawings(self.judged)
        if name not in drawings:
            raise unknown("figure", name, drawings)
        return drawings[name][1]()

    def to_latex(self) -> str:
        """Returns the verdict on every method as a ``tabular`` of the LaTeX package booktabs."""
        return tables.methods(self.judged).to_latex(index=False, escape=True)

    def to_xarray(self, method: str | None = None) -> Any:
        """Returns the figures as an xarray Dataset, NaN where nothing was trained or attacked.

        Figures of trials have the axes configuration, federation and seed. Those of attacks (leak, excess,
        success) have one more, the attack, at the first point of its numeric knobs. Knobs are coordinates of
        configurations. With a ``method``, whose configurations must be a full grid, its knobs are the axes.
        """
        return forms.labeled_arrays(self.results, lambda: self.judged, method)

    def not_attacked(self) -> list[str]:
        """Returns a sentence on each thing that was not attacked or not scored, and why."""
        return not_run.not_attacked(self.judged)

    def report(self) -> str:
        """Writes the report again, and returns headline and verdicts as a terminal shows them."""
        return running.report(self.workdir)

    def run_attacks(
        self,
        attacks: str | Iterable[str] | Mapping[str, Mapping[str, Any]],
        say: Callable[[str], None] = print,
    ) -> Sweep:
        """Attacks the stored trials, writes the report, and returns the sweep with the new rows.

        Args:
          attacks: names of attacks, or a mapping of names to options, as in a config.
          say: is given each line of progress.
        """
        single = isinstance(attacks, str) or not isinstance(attacks, Iterable)
        names: Any = (
            attacks if isinstance(attacks, Mapping) else [attacks] if single else [*attacks]
        )
        plan = running.stored_plan(self.workdir)
        outcome = running.attack_stored(plan, self.workdir, names, say=say)
        running.report(self.workdir)
        outcome.check()
        return load(self.workdir)


def folder_of(workdir: Any) -> pathlib.Path:
    """Returns the absolute path of a sweep's folder. Raises a UserError if ``workdir`` is empty or no path of
    this machine."""
    if not isinstance(workdir, str | os.PathLike) or not os.fspath(workdir):
        kind = type(workdir).__name__
        raise UserError(f"workdir is empty or of type {kind}: give the path of a folder.")
    return user_path(workdir, "workdir")


def load(workdir: str | os.PathLike[str]) -> Sweep:
    """Returns the sweep that is stored in a folder, finished or not.

    Arrays are read when they are asked for. ``unfinished`` lists what is missing. A file that is not as it
    was written raises a UserError of one line, with the command that mends it.
    """
    return Sweep(*store.load(folder_of(workdir)))


def run_sweep(
    config: Mapping[str, Any] | ConfigDict | Config | str | os.PathLike[str],
    workdir: str | os.PathLike[str],
    *,
    confirm: bool = False,
    command: str = "vfljax.run_sweep",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Trains and attacks a grid of trials, writes tables and ``workdir/report.html``, and returns the sweep.

    Parts that are stored in ``workdir`` are not done again: the same call continues a sweep that was
    stopped or killed. Call ``vfljax.use_this_machine()`` first, before JAX's first computation, for all
    cores and a cache of compiled programs.

    Args:
      config: a mapping of the fields of ``vfljax.config.DEFAULT``, such as a config file's
        ``get_config()`` returns; fields that it lacks have their defaults. Or the path of that file, or a
        ``vfljax.config.Config``.
      workdir: the folder of the sweep, new or of the same config.
      confirm: whether what is recommended is judged again, on three fresh seeds.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress.

    Raises:
      UserError: for an invalid config, data that cannot be read, another sweep in ``workdir``, or too
        little memory or disk. The error is one line that says what to do.
    """
    folder = folder_of(workdir)
    if isinstance(config, str | os.PathLike):
        config = vfljax.config.from_file(os.fspath(config))
    elif isinstance(config, ConfigDict):
        config = config.to_dict()
    if not isinstance(config, Mapping | Config):
        what = f"config is of type {type(config).__name__}"
        raise UserError(what, remedy="give a mapping of fields, or the path of a config file")
    experiment = config if isinstance(config, Config) else parse(config)
    outcomes = [running.finish(experiment, folder, command, say)]
    if confirm:
        outcomes.append(running.confirm(folder, command, say))
    running.report(folder)
    for outcome in outcomes:
        outcome.check()
    return load(folder)


def attack_wire(
    wire: Any,
    workdir: str | os.PathLike[str],
    *,
    after: Any = (),
    say: Callable[[str], None] = print,
    **asked: Any,
) -> Sweep:
    """Attacks a recorded exchange of any federation, as ``vfljax attack --wire`` does, and returns a sweep.

    Args:
      wire: the arrays of ``vfljax.datasets.wire`` by name, or the path of a file or folder of them; for
        several runs a list of these. Arrays are written to ``workdir``.
      workdir: where the attacks are written; the same call continues one that was stopped.
      after: the same runs under a defense, in the same form.
      say: is given each line of progress.
      **asked: other fields of ``vfljax.auditing.wires.WireRequest``: federation, known, attacks, utility,
        alone, after_utility.

    Raises:
      UserError: of one line.
    """
    folder = folder_of(workdir)
    try:
        several: Any = {n: tuple(as_axis(asked[n])) for n in wires.SEVERAL if n in asked}
        runs: Any = {"runs": wires.written(wire, folder / "wire.npz")}
        runs |= {"after": wires.written(after, folder / "after.npz")}
        of_wire = wires.WireRequest(**{**runs, **asked, **several})
    except TypeError as error:
        raise UserError(f"attack_wire: {error}.") from error
    if wires.attack(of_wire, folder, "vfljax.attack_wire", say):
        running.report(folder)
    return load(folder)
