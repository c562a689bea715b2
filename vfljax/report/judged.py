"""A judged sweep: its frames, its verdicts, and what is recommended. All that a report shows is made of these.

To the columns of ``judge.judge`` the verdicts add

    label            a text for the configuration, such as "kdk epsilon=.3 k=2"; no two have the same
    known_by         whether an attack that knows it was tried, for each defense of the chain. For a defense of
                     a plugin, whose author names these attacks, they must also read more than all others
                     somewhere
    author_says      whether attacks were tried of which nothing but the author's word says that they know it
    faint            whether attacks that know a defense of the chain read little of planted labels at its
                     strength (``defenses.rows.Strengths.faint``)
    epsilon claimed  the least ε of label differential privacy that a defense of the chain claims; NaN for none
    published_leak   the leak if only published attacks are tried, without those that know the defense; NaN
                     if one of these settled a published attack that may have read as much
    published_leader the attack that then leads
    representative   whether it represents its method in tables: the operating point that is chosen; if none is,
                     the one that loses least utility on validation rows
    recommended      whether to switch it on: at most one in a panel, see ``_recommended``
    confirms         of a verdict on fresh seeds: whether it helps as much there

The last three are False but for K = ``facts.known``, the number of known labels that the report leads with.
"""

from __future__ import annotations

import math
import pathlib
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax import defenses, store
from vfljax.config import Config
from vfljax.plugins.described import is_recorded
from vfljax.report.costs import Cost
from vfljax.report.judge import judge
from vfljax.report.rows import Facts, Frames, read
from vfljax.report.verdicts import Verdict
from vfljax.report.words import number
from vfljax.store import StoredSweep
from vfljax.sweep.grid import experiment_of

CONFIRMED = "confirmed"
"""The folder within a sweep's that has the sweep of what is recommended, on fresh seeds."""
NUMBERS = ("learning_rate", "momentum", "weight_decay", "decay", "strength")
"""The numbers of training that may be axes of a grid, and are then in labels."""
LITTLE = 0.005
"""Leaks that differ by no more are treated as equal."""


class Judged(NamedTuple):
    """A stored sweep with its verdicts; the module's docstring lists the columns."""

    sweep: StoredSweep
    experiment: Config
    rows: pd.DataFrame  # see ``report.rows``
    trials: pd.DataFrame
    facts: Facts
    verdicts: pd.DataFrame
    confirmed: pd.DataFrame  # verdicts on fresh seeds, by the sweep's numbers of configurations

    @property
    def leading(self) -> pd.DataFrame:
        """The verdicts of K = ``facts.known``, the number of known labels that the report leads with."""
        known = self.verdicts["known"] == self.facts.known
        return self.verdicts[known]


def judge_sweep(workdir: pathlib.Path) -> Judged:
    """Reads the sweep in ``workdir`` and judges it."""
    sweep = store.load(workdir)
    return judged(sweep, experiment_of(sweep))


def judged(sweep: StoredSweep, experiment: Config) -> Judged:
    """Returns a stored sweep with its verdicts, and those of the folder of fresh seeds if that is finished."""
    frames = read(sweep, experiment)
    verdicts = with_words(judge(*frames), frames, store.attack_summary(sweep.workdir))
    folder = sweep.workdir / CONFIRMED
    confirmed = verdicts.iloc[:0]
    if (folder / "sweep.json").exists():
        fresh = store.load(folder)
        if not fresh.unfinished:
            confirmed = on_fresh_seeds(verdicts, frames.trials, judged(fresh, experiment_of(fresh)))
    return Judged(sweep, experiment, *frames, verdicts, confirmed)


def with_words(
    verdicts: pd.DataFrame, frames: Frames, attacks: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Returns the verdicts with the columns of this module.

    Args:
      verdicts: of ``judge.judge``.
      frames: of the sweep.
      attacks: the entries of ``store.attack_summary``, by variant.
    """
    knobs = knobs_of(frames.trials)
    chains = frames.trials.drop_duplicates("configuration").set_index("configuration")["defenses"]
    about = pd.DataFrame(
        {
            "label": labels(frames.trials, knobs),
            "faint": {c: _faint(chain, knobs[c]) for c, chain in chains.items()},
            "epsilon claimed": {c: _epsilon(chain, knobs[c]) for c, chain in chains.items()},
        }
    )
    out = verdicts.join(about, on="configuration")
    out["known_by"], out["author_says"] = _known_by(out, frames.rows, attacks)
    published = _published(out, frames)
    out = out.join(published, on=[*published.index.names])
    out["representative"] = _representative(out, frames.facts)
    return out.assign(recommended=_recommended(out, frames.facts), confirms=False)


def _published(verdicts: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Returns the columns ``published_leak`` and ``published_leader`` by configuration, panel and K.

    A run in which an attack that is in no paper settled a published one does not show what published attacks
    read, unless another of them reads as much. On a configuration with such a run both columns are missing.
    """
    rows, place, run = frames.rows, ["configuration", "panel"], ["configuration", "panel", "seed"]
    known, adaptive = [*place, "known"], rows["adaptive"].astype(bool)
    out = judge(rows[~adaptive], *frames[1:]) if adaptive.any() else verdicts
    out = out[[*known, "leak", "leader"]].set_index(known).add_prefix("published_")
    attacked = (rows["role"] == "attack") & adaptive.any()
    for most in verdicts["known"].unique():
        of = rows[attacked & (rows["known"] <= most)]
        published = of[~of["adaptive"].astype(bool)]
        read, every = (x.groupby(run)["leak"].max() for x in (published, of))
        settled = published.loc[published["settled_by"] != "", run].drop_duplicates()
        at = pd.MultiIndex.from_frame(settled)
        hidden = settled[~(every.reindex(at) - read.reindex(at) <= LITTLE).to_numpy()]
        hidden = pd.MultiIndex.from_frame(hidden[place].drop_duplicates().assign(known=most))
        out.loc[out.index.isin(hidden), "published_leak"] = math.nan
        out.loc[out.index.isin(hidden), "published_leader"] = None
    return out


def knobs_of(trials: pd.DataFrame) -> dict[int, dict[str, Any]]:
    """Returns the knobs of each configuration, such as {"kdk.epsilon": .45}, by its number. Numbers of training
    are among them if they vary in the sweep."""
    varied = [
        name for name in NUMBERS if name in trials and trials[name].fillna(0).nunique(False) > 1
    ]
    names = [name for name in trials if "." in name] + varied
    first = trials.drop_duplicates("configuration").set_index("configuration")[names]
    first[varied] = first[varied].fillna(0)
    return {
        place: {name: value for name, value in values.items() if not _missing(value)}
        for place, values in first.to_dict("index").items()
    }


def values_of(defense: str, knobs: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns the knobs and the options of one defense, by their names in the defense.

    Args:
      defense: its name.
      knobs: of a configuration, see ``knobs_of``.
    """
    prefix = f"{defense}."
    values = {k.removeprefix(prefix): v for k, v in knobs.items() if k.startswith(prefix)}
    return defenses.TABLE[defense].knobs_and_options(values)


def members_of(chain: str) -> list[str]:
    """Returns the names of the defenses of a chain, the column ``defenses``."""
    return [name for name in chain.split("+") if name]


def labels(trials: pd.DataFrame, knobs: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Returns a text for each configuration: its method, with the knobs that vary in it or have no default.

    Texts that several configurations would have are followed by the configuration's number.
    """
    first = trials.drop_duplicates("configuration").set_index("configuration")
    out = {}
    for method, members in first.groupby("method", sort=False):
        of = [knobs[place] for place in members.index]
        every = {key for each in of for key in each}
        in_label = {
            key
            for key in every
            if key in NUMBERS or _required(key) or len({each.get(key) for each in of}) > 1
        }
        for place, chain in members["defenses"].items():
            named = [key for key in knobs[place] if key in in_label]
            out[place] = " ".join([method, *_words(named, knobs[place], members_of(chain))])
    counts = Counter(out.values())
    return {place: text if counts[text] == 1 else f"{text} #{place}" for place, text in out.items()}


def _words(named: list[str], knobs: Mapping[str, Any], members: list[str]) -> list[str]:
    """Returns "epsilon=.3" for each knob that is named; with its defense if two have a knob of that name."""
    last = [key.split(".")[-1] for key in named]
    out = []
    for key in named:
        defense, _, knob = key.partition(".")
        word, value = key.split(".")[-1], knobs[key]
        if last.count(word) > 1:
            word = key
        elif defense in members:
            word = defenses.TABLE[defense].remarks.knob_label(knob, values_of(defense, knobs)[1])
        out.append(str(value) if isinstance(value, str) else f"{word}={number(value)}")
    return out


def _required(key: str) -> bool:
    """Returns whether a knob has no default, so that a label names it also where it does not vary."""
    defense, _, knob = key.partition(".")
    if defense == "model":  # a method has one model, which its name shows
        return False
    return bool(knob) and defense in defenses.TABLE and knob in defenses.TABLE[defense].required


def _faint(chain: str, knobs: Mapping[str, Any]) -> bool:
    return any(defenses.TABLE[name].faint(values_of(name, knobs)[0]) for name in members_of(chain))


def _epsilon(chain: str, knobs: Mapping[str, Any]) -> float:
    claims = [
        defenses.TABLE[name].remarks.epsilon(*values_of(name, knobs)) for name in members_of(chain)
    ]
    return min((claim for claim in claims if claim is not None), default=math.nan)


def _known_by(
    verdicts: pd.DataFrame, rows: pd.DataFrame, attacks: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.Series, pd.Series]:
    """Returns the columns ``known_by`` and ``author_says``. A defense for which no attack is listed in a panel
    has none to be tried."""
    scored = rows[(rows["role"] == "attack") & (rows["leak"].notna() | (rows["settled_by"] != ""))]
    places = scored[["configuration", "panel", "variant", "label"]].drop_duplicates()
    scored_variants: dict[tuple[int, str], dict[str, str]] = {}
    for configuration, panel, variant, label in places.itertuples(index=False, name=None):
        scored_variants.setdefault((configuration, panel), {})[label] = variant
    identities = {variant: store.identity_of(entry) for variant, entry in attacks.items()}
    supported = _supported_claims(rows, verdicts, identities)
    found: dict[tuple[Any, ...], tuple[bool, bool]] = {}
    out = []
    columns = verdicts[["configuration", "panel", "defenses", "broken"]]
    for configuration, panel, chain, broken in columns.itertuples(index=False, name=None):
        of = scored_variants.get((configuration, panel), {})
        broken_labels = set(broken.split(", "))
        run = frozenset(variant for label, variant in of.items() if label not in broken_labels)
        key = panel, chain, run
        if key not in found:
            table = {name: defenses.TABLE[name] for name in members_of(chain)}
            listed = {name: row for name, row in table.items() if row.known_by.get(panel)}
            of_run = [identities[variant] for variant in run]
            tried_on = all(row.known_to(panel, of_run) for row in listed.values())
            believed = all(
                _vouched_for(row) or (panel, name) in supported for name, row in listed.items()
            )
            found[key] = tried_on and believed, tried_on and not believed
        out.append(found[key])
    columns = zip(*out) if out else ((), ())
    known, said = (pd.Series(column, verdicts.index, bool) for column in columns)
    return known, said


def _vouched_for(row: defenses.DefenseRow) -> bool:
    """Returns whether this library says which attacks know a defense, and not the author of a plugin."""
    return row.origin is None or is_recorded(row)


def _supported_claims(
    rows: pd.DataFrame, verdicts: pd.DataFrame, identities: Mapping[str, Any]
) -> set[tuple[str, str]]:
    """Returns (panel, defense) of the plugins' defenses of which, on some configuration, an attack that is said
    to know the defense has a higher mean leak than all that are not."""
    chains = verdicts.drop_duplicates("configuration").set_index("configuration")["defenses"]
    scored = rows[(rows["role"] == "attack") & rows["leak"].notna()]
    place = ["configuration", "panel", "variant", "label"]
    means = scored.groupby(place, sort=False)["leak"].mean().reset_index()
    out = set()
    for (configuration, panel), of in means.groupby(["configuration", "panel"], sort=False):
        for name in members_of(chains.get(configuration, "")):
            row = defenses.TABLE[name]
            if _vouched_for(row):
                continue
            knows = np.array([row.known_to(panel, [identities[v]]) for v in of["variant"]])
            leaks = of["leak"].to_numpy()
            if leaks[knows].max(initial=-1.0) > leaks[~knows].max(initial=-1.0):
                out.add((panel, name))
    return out


def _representative(verdicts: pd.DataFrame, facts: Facts) -> pd.Series:
    """Returns which configurations represent their methods [verdicts]; undefended represents its own."""
    of = verdicts[verdicts["known"] == facts.known].assign(unattacked=verdicts["leak"].isna())
    of = of[of["undefended"] | (of["defenses"] != "")]
    first = of.sort_values(
        ["chosen", "unattacked", "validation_loss", "leak"],
        ascending=[False, True, True, True],
        kind="stable",
    )
    representatives = first.drop_duplicates(["panel", "method"]).index
    return pd.Series(verdicts.index.isin(representatives), verdicts.index)


def _recommended(verdicts: pd.DataFrame, facts: Facts) -> pd.Series:
    """Returns which configurations to switch on [verdicts], at most one in a panel, at K = ``facts.known``.

    A candidate is the operating point of its method, which keeps the utility on validation rows; its verdict
    helps; all attacks on it have figures, and one that knows it was tried; it does not cost too much on test
    rows; and the upper limit of its leak is at most the goal's. Of these the one of lowest mean leak is
    recommended, then of lowest upper limit of e, then of lowest loss.
    """
    able = [verdict.value for verdict in Verdict if verdict.helps]
    candidates = verdicts[
        verdicts["chosen"]
        & verdicts["verdict"].isin(able)
        & verdicts["known_by"]
        & ~verdicts["incomplete"]  # an attack that was not reached may be the one that reads most
        & (verdicts["cost"] != Cost.TOO_MUCH)
        & (verdicts["leak_upper"] <= facts.goal.max_leak + 1e-12)
        & (verdicts["known"] == facts.known)
    ]
    first = candidates.sort_values(["leak", "e_upper", "validation_loss"], kind="stable")
    best = first.drop_duplicates("panel").index
    return pd.Series(verdicts.index.isin(best), verdicts.index)


def on_fresh_seeds(verdicts: pd.DataFrame, trials: pd.DataFrame, fresh: Judged) -> pd.DataFrame:
    """Returns the verdicts of a sweep on fresh seeds, with the first sweep's numbers and labels of
    configurations. ``confirms`` is whether a verdict helps at least as much as the first one, and the utility
    is kept on validation rows.

    Args:
      verdicts: of the first sweep.
      trials: of the first sweep.
      fresh: the sweep on fresh seeds. Configurations that the first does not have are left out.
    """
    number_of = same_points(trials, fresh.trials)
    out = fresh.leading[fresh.leading["configuration"].isin(number_of)]
    out = out.assign(configuration=out["configuration"].map(number_of), known=fresh.facts.known)
    first = verdicts.drop_duplicates(["configuration", "panel"])  # of the headline's K
    first = first[["configuration", "panel", "label", "verdict"]]
    out = out.drop(columns="label").merge(
        first, on=["configuration", "panel"], suffixes=("", "_first")
    )
    able = [verdict.value for verdict in Verdict if verdict.helps]
    rank = {verdict: place for place, verdict in enumerate(able)}
    as_strong = out["verdict"].map(rank) <= out["verdict_first"].map(rank)
    return out.assign(confirms=as_strong & out["qualifies"]).drop(columns="verdict_first")


def same_points(trials: pd.DataFrame, others: pd.DataFrame) -> dict[int, int]:
    """Returns the number of the configuration with the same method and knobs, by that of another sweep.

    Args:
      trials: of a sweep.
      others: of another sweep; configurations that the first does not have are left out.
    """
    names = [name for name in trials if "." in name or name in NUMBERS]
    first, second = (
        {_key(of, names): int(of["configuration"]) for of in table.to_dict("records")}
        for table in (trials, others.reindex(columns=trials.columns))
    )
    return {second[key]: number for key, number in first.items() if key in second}


def _key(trial: Mapping[str, Any], names: list[str]) -> tuple[Any, ...]:
    values = [None if _missing(trial[name]) else trial[name] for name in names]
    return trial["method"], *values


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))
