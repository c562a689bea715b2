"""Reads a stored sweep into two data frames: the rows of attacks and learners, and the trials.

This is the only module of the report that reads the columns on disk. ``verdict_frame`` turns the frames into
verdicts.

**rows** has one row for each attack that was planned for a trial, and for each local-only learner:

    configuration, panel, federation  what was attacked; a learner has -1, "" and ""
    trial, seed                       of the federation; a learner has the trial -1
    attackers                         the numbers of the attacking parties, such as "0+1"
    known                             the labels that it used, to learn or to name its classes
    draws                             the draws of known labels over which its figures are means
    attack, variant                   the attack's name, and its key in ``store.attack_summary``
    point                             the number of the point of the attack's numeric knobs, the first being 0
    label                             a text that is unique among the attacks of a panel
    role                              "attack", "learner" (local-only), "oracle", or "rejected": an attack that
                                      was not run, because cheap ones have rejected its configuration
    adaptive                          whether it is in no paper
    leak                              on the scale of ``Task.leak``; NaN without a figure
    settled_by                        the label of the cheaper attack that settled it in its run, so that it was
                                      not run and has no figure; else ""
    all other columns                 figures as ``attack_runs.scoring`` stores them

**The direction of a leak.** With two classes, or numbers, an attack or learner that knows labels is never
turned. An attack that knows none has no direction of its own, and is turned by the known labels of the sweep's
other attacks; if no attack knows any, by all rows. With more classes such an attack names its classes in the
same way. It then counts as knowing these labels, and is not scored on them.

**trials** has one row for each trained federation: ``trial, configuration, method, defenses, panel,
federation, seed, diverged, test_utility, validation_utility, alone_test, alone_validation`` (of the label party
alone), and all other stored numbers, the knobs among them. Utility is accuracy, or AUC if the rarer of two
classes has under 30 % of the rows; of two classes it is oriented. Of numbers it is R², and 0 where R² is below.
It is NaN where training diverged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax import attacks, plugins, store, tasks
from vfljax.config import Config, Goal
from vfljax.store import StoredSweep
from vfljax.sweep.alone import ALONE_LEARNERS
from vfljax.tasks import Task
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, AttackIdentity, federation_of

PANELS = {SPLIT: "with model splitting", NO_SPLIT: "without model splitting"}
"""The panels of a report. Honest and malicious federations with a top model are judged together, as SPLIT; the
utility of a panel is that of its honest federation, which has the panel's name."""

PLACE = ["variant", "attack_configuration", "federation"]
"""The columns that identify an attack at one point of its knobs in one federation."""
ABOUT = ["attackers", "known", "draws", "attack", "point", "label", "role", "adaptive"]
IDENTITY = ("options", "shown", "rule", "outdated", "view", "what")  # columns that are left out


class Facts(NamedTuple):
    """What holds for a whole sweep."""

    classes: int  # 1 of numbers (``vfljax.tasks``)
    chance: float  # the leak of a guess: 1/2 for two classes and numbers, else 1/C
    scored_rows: int  # m of ``limits.half_row``: the rows whose errors bound the spread of a leak
    known: int = 0  # the most labels that an attack knows, which the report leads with
    utility: str = "accuracy"  # or "AUC", or "R²" of numbers
    guess: float = 0.5  # the utility of a guess
    parties: tuple[str, ...] = ()  # names of the passive parties
    class_names: tuple[str, ...] = ()  # where the sweep stores them, else numbers
    positive: int = 1  # of two classes, the one that TPR, ROC and precision are of
    goal: Goal = Goal()

    @property
    def scale(self) -> str:
        """The name of the scale of leaks."""
        return self.task.scale(self.classes)

    @property
    def task(self) -> Task:
        """The task that labels set."""
        return tasks.of(self.classes)

    @property
    def both(self) -> tuple[str, str]:
        """The names of two classes, the positive one first."""
        return self.class_names[self.positive], self.class_names[1 - self.positive]


class Frames(NamedTuple):
    """A stored sweep as data frames; the module's docstring lists their columns."""

    rows: pd.DataFrame
    trials: pd.DataFrame
    facts: Facts
    attacks: Mapping[str, Mapping[str, Any]]  # by variant, as of ``store.attack_summary``


def read_frames(sweep: StoredSweep, experiment: Config | None = None, named: bool = True) -> Frames:
    """Returns the frames of a stored sweep, finished or not.

    Args:
      sweep: as ``store.load`` returns it.
      experiment: the sweep's, for its goal and the names of its parties; None gives default ones.
      named: whether an attack that was turned or named by the known labels of others counts as knowing these.
        If not, the names of its classes are granted to it, as they are where no attack knows labels.
    """
    plugins.stand_in(sweep.plugins)
    facts = _facts(sweep, experiment)
    trials = _trials(sweep, facts, experiment)
    learners, summary = _learners(sweep), store.attack_summary(sweep.workdir)
    rows = _attacks(sweep, summary, trials, learners, named)
    rows = pd.concat([part for part in (rows, learners) if len(part)] or [rows], ignore_index=True)
    fair = rows[rows["role"] == "attack"]
    facts = facts._replace(known=int(fair["known"].max()) if len(fair) else 0)
    return Frames(rows, trials, facts, summary)


def _facts(sweep: StoredSweep, experiment: Config | None) -> Facts:
    data = sweep.header["data"]
    balance = data["balance"]
    classes = len(balance)
    task = tasks.of(classes)
    utility = task.utility(balance)
    passive = sweep.config["parties"]["passive"]
    parties = experiment.parties.name_of if experiment else "passive party {}".format
    return Facts(
        classes=classes,
        chance=task.chance(classes),
        scored_rows=scored_rows(data),
        utility=utility.name,
        guess=utility.guess,
        parties=tuple(map(parties, range(passive))),
        class_names=tuple(data.get("class_names") or map(str, range(classes))),
        positive=data.get("positive", 1),
        goal=experiment.goal if experiment else Goal(),
    )


def scored_rows(data: Mapping[str, Any]) -> int:
    """Returns m of ``limits.half_row`` for what the header of a sweep says of its data."""
    balance, rows = data["balance"], data.get("distinct", data.get("recorded", data["train"]))
    return tasks.of(len(balance)).counted_rows(balance, rows, data.get("tied", 0))


def _trials(sweep: StoredSweep, facts: Facts, experiment: Config | None) -> pd.DataFrame:
    table = sweep.results
    lists = [field.name for field in table.schema if pa.types.is_list(field.type)]
    trials = table.drop_columns(lists).to_pandas()
    kinds = {name: federation_of(name) for name in trials["federation"].unique()}
    trials["panel"] = trials["federation"].map({name: of.panel for name, of in kinds.items()})
    trials["diverged"] = trials["status"] != "ok"
    utility = facts.task.utility(sweep.header["data"]["balance"])
    of = {"test_utility": "test", "validation_utility": "validation"}
    of |= {"alone_test": "alone_test", "alone_validation": "alone_validation"}
    for name, part in of.items():
        stored = trials.get(f"{part}_{utility.figure}", pd.Series(np.nan, trials.index))
        trials[name] = stored.astype(float)
    trials = _best_alone(trials, ALONE_LEARNERS[facts.task.name], utility.alone)
    # one R² of -40 would rule every limit
    trials[[*of]] = trials[[*of]].clip(lower=0.0)
    parties = experiment.parties.label_features if experiment else True
    # a recorded exchange states it in its header
    if not sweep.header["data"].get("label_columns", parties):
        for name in ("alone_test", "alone_validation"):
            if trials[name].isna().all():  # without columns the label party guesses
                trials[name] = facts.guess
    return trials


def _best_alone(trials: pd.DataFrame, learners: Sequence[str], figure: str) -> pd.DataFrame:
    """Returns the trials with the figures of the best that the label party reaches alone: of the network of the
    shard and of other learners, the one that is best on the validation rows of the seed."""
    for name in learners:
        validation, test = (f"alone_{name}_{part}_{figure}" for part in ("validation", "test"))
        if validation in trials and test in trials:
            better = (
                ~(trials["alone_validation"] >= trials[validation]) & trials[validation].notna()
            )
            for of, stored in (("alone_validation", validation), ("alone_test", test)):
                trials[of] = trials[of].mask(better, trials[stored].astype(float))
    return trials


def _attacks(
    sweep: StoredSweep,
    summary: Mapping[str, Mapping[str, Any]],
    trials: pd.DataFrame,
    learners: pd.DataFrame,
    named: bool,
) -> pd.DataFrame:
    """Returns the rows of attacks on trials that did not diverge, stored or only planned."""
    current = {key: about for key, about in summary.items() if not about.get("outdated")}
    columns = [*PLACE, "trial", "seed"]
    stored = sweep.attacks.to_pandas() if sweep.attacks.num_rows else pd.DataFrame(columns=columns)
    stored = stored[stored["variant"].isin(current)]
    ok = trials[~trials["diverged"]]
    planned = _planned(sweep, stored, ok, current).reindex(columns=columns)
    rows = stored.merge(planned, how="outer", on=columns) if len(stored) else planned
    if not len(rows):
        empty = ["configuration", "panel", *columns, *ABOUT, "leak", "settled_by"]
        return pd.DataFrame(columns=empty)
    # what is said of an attack is parsed once for each place, not for each row
    places = rows[PLACE].drop_duplicates()
    # settled rows have no draws
    draws = stored.groupby(PLACE)["draws"].max().dropna() if "draws" in stored else pd.Series()
    drawn, most = draws.to_dict(), learners["draws"].max() if len(learners) else 1
    about = pd.DataFrame(
        [
            _about(tuple(place), summary[place[0]], drawn, most)
            for place in places.itertuples(index=False, name=None)
        ],
        index=pd.MultiIndex.from_frame(places),
    )
    about["label"] = _labels(about)
    if not len(stored):
        rows["leak"] = np.nan
    columns = [name for name in rows if name not in (*ABOUT, *IDENTITY)]
    rows = rows[columns].merge(about[ABOUT].reset_index(), on=PLACE)
    if named and "naming" in rows:
        free = (rows["known"] == 0) & (rows["role"] == "attack")
        # a variant of which every row is settled would have been named by as many labels as others
        naming = rows.groupby("variant")["naming"].transform("max").fillna(rows["naming"].max())
        rows["known"] = rows["known"].where(~free, naming.fillna(0).astype(int))
    at = trials.set_index("trial")[["configuration", "panel"]]
    if "settled_by" not in rows:  # stored before there were settled rows
        rows["settled_by"] = ""
    rows["settled_by"] = rows["settled_by"].astype(object).where(rows["settled_by"].notna(), "")
    if "rejected" in rows:
        not_run = rows["rejected"].eq(True)
        rows = rows.assign(role=rows["role"].mask(not_run, "rejected")).drop(columns="rejected")
    return rows.join(at, on="trial").drop(columns="attack_configuration")


def _planned(
    sweep: StoredSweep, stored: pd.DataFrame, ok: pd.DataFrame, current: Mapping[str, Any]
) -> pd.DataFrame:
    """Returns the places and trials [planned rows] for which a row of an attack is to be stored."""
    parts = []
    for variant, entry in current.items():
        if entry["status"] == "skipped" or variant == store.LOCAL_ONLY_VARIANT:
            continue
        attack = attacks.TABLE.get(entry["attack"])
        kinds, trials = entry["federations"], ok
        honest = sweep.config["attackers"][0]
        if json.loads(entry["attackers"]) != list(honest) and kinds != [MALICIOUS]:
            kinds = [kind for kind in kinds if kind != MALICIOUS]
        trials = trials[trials["federation"].map(lambda name: federation_of(name).kind).isin(kinds)]
        if attack is not None and attack.whole_batches:
            # it is run only under methods that it knows, and their trials have rows
            of_variant = stored.loc[stored["variant"] == variant, "trial"]
            known = ok.loc[ok["trial"].isin(of_variant), "method"]
            trials = trials[trials["method"].isin(known)]
        trials = trials[["trial", "seed", "federation"]]
        parts += [
            trials.assign(variant=variant, attack_configuration=point)
            for point in range(len(entry["knobs"]))
        ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _about(
    place: tuple[Any, ...], entry: Mapping[str, Any], drawn: Mapping[Any, float], most: float
) -> dict[str, Any]:
    """Returns what a row says of its attack.

    Args:
      place: variant, point of the knobs and federation.
      entry: of ``store.attack_summary``.
      drawn: the number of draws of each place that has figures.
      most: the largest number of draws of known labels.
    """
    _, point, name = place
    identity, federation = store.identity_of(entry), federation_of(name)
    knobs = entry["knobs"][point]
    known = int(knobs.get("known", 0))
    present = attacks.TABLE.get(identity.attack)
    identity = identity._replace(
        federation=federation.kind,
        attackers=federation.malicious or identity.attackers,
        outdated=present is not None and present.rule != identity.rule,
    )
    # an attack that knows no label is compared with learners over all draws
    draws = drawn.get(place, most) if known else most
    return {
        "panel": federation.panel,
        "identity": identity,
        "point": point,
        "knobs": knobs,
        "attackers": attackers_text(identity.attackers),
        "known": known,
        "draws": float(draws),
        "attack": identity.attack,
        "role": "oracle" if entry.get("oracle") else "attack",
        "adaptive": bool(entry.get("adaptive")),
    }


def attackers_text(attackers: tuple[int, ...]) -> str:
    """Returns the numbers of attacking parties as text, such as "0+1"."""
    return "+".join(map(str, attackers))


def _labels(about: pd.DataFrame) -> list[str]:
    """Returns a label for each attack that is unique in its panel: with the knobs that vary, and with the
    federation's kind if both honest and malicious parties ran the attack."""
    texts = [identity.label for identity in about["identity"]]
    points: dict[tuple[str, AttackIdentity], list[Mapping[str, float]]] = {}
    kinds: dict[tuple[str, str], set[str]] = {}
    for panel, identity, knobs, text in zip(about.panel, about.identity, about.knobs, texts):
        points.setdefault((panel, identity), []).append(knobs)
        kinds.setdefault((panel, text), set()).add(identity.federation)
    out = []
    for panel, identity, knobs, text in zip(about.panel, about.identity, about.knobs, texts):
        others = points[panel, identity]
        varying = [k for k in knobs if any(other.get(k) != knobs[k] for other in others)]
        malicious = identity.federation == MALICIOUS and len(kinds[panel, text]) > 1
        words = [text, *(f"{k}={knobs[k]:g}" for k in varying)]
        out.append(" ".join([*words, "(malicious)"] if malicious else words))
    return out


def settlers(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """Returns the labels of those who settled rows, joined by ", ", for each group that has settled rows.

    Args:
      rows: of ``Frames.rows``.
      by: the columns of a group.
    """
    settled = rows[rows["settled_by"] != ""].drop_duplicates([*by, "settled_by"])
    return settled.groupby(by, sort=False)["settled_by"].agg(", ".join).astype(object)


def _learners(sweep: StoredSweep) -> pd.DataFrame:
    """Returns the rows of the local-only learners."""
    table = sweep.local_only
    if not table.num_rows:
        return pd.DataFrame()
    rows = table.to_pandas()
    stored = table.to_pylist()
    rows["attackers"] = [attackers_text(store.identity_of(row).attackers) for row in stored]
    rows["label"] = [store.learner_of(row) for row in stored]
    rows["attack"] = rows["label"]
    rows["draws"] = rows["draws"].fillna(1.0) if "draws" in rows else 1.0
    columns = [name for name in rows if name not in (*IDENTITY, "attack_configuration")]
    given = {"configuration": -1, "panel": "", "federation": "", "trial": -1, "point": 0}
    return rows[columns].assign(**given, role="learner", adaptive=False, settled_by="")
