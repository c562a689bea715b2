"""``vfljax.load``, and the ``Sweep`` that it returns: what is stored, and what the report concludes."""

from __future__ import annotations

import functools
import html
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from vfljax import store
from vfljax.api import forms
from vfljax.api.arguments import Path, checked, converted
from vfljax.errors import UserError, argument, unknown
from vfljax.report import not_run, page, records, verdict_tables
from vfljax.report.figures import complete
from vfljax.report.judged_sweep import Judged
from vfljax.report.sweep_answers import judge_stored
from vfljax.scheduling import running
from vfljax.store.attack_rows import numbers_of_rows
from vfljax.sweep.grid import experiment_of
from vfljax.sweep.plan import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        return judge_stored(self, experiment_of(self))

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
        described by ``vfljax.report.verdict_frame``, ``costs`` and ``verdict_columns``. Knobs ("kdk.epsilon")
        follow.

        Args:
          known: K; None: the largest number of labels that an attack of the sweep knows.
        """
        return forms.verdict_frame(self.judged, known)

    def leaks(self) -> pd.DataFrame:
        """Returns a row for every configuration, federation, attack and seed, with the attack's figures.

        ``leak`` is in the attack's own direction if it knows labels; ``label`` names the attack, and
        ``configuration_label`` the configuration. A planned row without a figure has NaN; if a cheaper attack
        settled it, so that it was not run, ``settled_by`` is that attack's label. All columns are described by
        ``vfljax.report.frames`` and ``vfljax.api.forms.leak_frame``.
        """
        return forms.leak_frame(self.judged)

    def attack_rows(self, name: str, /, **values: Any) -> pd.DataFrame:
        """Returns the rows of ``leaks`` of one attack, such as ``attack_rows("direct", rule="most_negative")``.

        Args:
          name: of the attack.
          **values: of its options and numeric knobs, which rows must have; a KeyError lists those that exist.
        """
        return forms.attack_frame(self.judged, name, values)

    def records(self) -> pd.DataFrame:
        """Returns in how many runs the leading attack reads each row of the data set.

        There is a row for each configuration, panel and row of the data set that a run scores; of a data set of
        more than 1024 rows, 1024 are drawn. Columns:

            configuration, label, panel  as of ``verdicts``
            attack                       the attack that leads on most seeds, the ``leader`` of ``verdicts``
            row                          number of the row from 0. In a table that is its place among the rows
                                         that were kept (the notes say which were left out); those of a test
                                         file come last. Of recordings it is the array ``rows``; without it one
                                         run's rows follow another's
            runs                         in how many runs (seeds of the configuration) it is scored: it is a
                                         training row, its label is not known, and the attack was run
            read                         in how many of these the attack names its class rightly, in all draws
                                         of known labels

        With two classes the attack names as many rows positive as are. A row may be read by chance, so that
        ``read`` says more the more runs there are.
        """
        return records.records(self.judged, numbers_of_rows(self.splits()))

    def figure(self, name: str = "frontier") -> Figure:
        """Returns a figure of the report, in Matplotlib, by the name of its file, "heat_kdk" for example."""
        drawings = page.drawings(self.judged)
        if name not in drawings:
            raise unknown("figure", name, drawings)
        return complete(drawings[name].draw())

    def to_latex(self) -> str:
        """Returns the verdict on every method as a ``tabular`` of the LaTeX package booktabs."""
        return verdict_tables.shortened(verdict_tables.methods(self.judged)).to_latex(
            index=False, escape=True
        )

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
        attacks: str | Sequence[str] | Mapping[str, Mapping[str, Any]],
        say: Callable[[str], None] = print,
    ) -> Sweep:
        """Attacks the stored trials, writes the report, and returns the sweep with the new rows.

        Args:
          attacks: names of attacks, or a mapping of names to options, as in a config.
          say: is given each line of progress.
        """
        names = converted(Sequence[str] | Mapping[str, Any], attacks, argument("attacks"))
        outcome = running.attack_stored(
            running.stored_plan(self.workdir), self.workdir, names, say=say
        )
        running.report(self.workdir)
        outcome.check()
        return load(self.workdir)


@checked
def load(workdir: Path) -> Sweep:
    """Returns the sweep that is stored in a folder, finished or not.

    Arrays are read when they are asked for. ``unfinished`` lists what is missing.

    Args:
      workdir: the folder of a sweep.

    Raises:
      UserError: of one line, if there is no sweep, or a file is not as it was written, with the remedy.
    """
    return Sweep(*store.load(workdir))
