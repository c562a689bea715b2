"""The tables of a report: frames of text with a title and a caption, made of the verdicts and the rows.

Only these frames are rendered, as HTML, Markdown, LaTeX, or for a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype

from vfljax import attacks as attack_table
from vfljax import store
from vfljax.config import Config
from vfljax.report import controls, guarantees, verdict_tables
from vfljax.report.frames import PANELS, settlers
from vfljax.report.judged_sweep import Judged
from vfljax.report.words import NONE, figure
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT


class Section(NamedTuple):
    """One table of the report."""

    title: str
    caption: str  # paragraphs, an empty line between them
    frame: pd.DataFrame  # of text


class Extra(NamedTuple):
    """What the caller of a report adds to it, such as a paper's table or figure (``analysis.reproduction``)."""

    sections: tuple[Section, ...] = ()
    draw: Callable[[], Figure] | None = None


NO_EXTRA = Extra()
Extend = Callable[[store.StoredSweep, Config], Extra]
KINDS = {SPLIT: "split", MALICIOUS: "malicious", NO_SPLIT: "no split"}
RECORDED = (
    "Rows without an answer are left out of what is attacked, and so are epochs without any gradient. In a "
    "packed view the k-th message of a row is its k-th epoch and its last one is in the last epoch, as where "
    "rows were drawn with replacement: attacks that read which rows shared a batch are then not run."
)
TOLD = (
    "What was kept of the trees of each seed, for the rows that are attacked. A party is told the nodes of "
    "each tree as far as the notes say, and receives gradients only where they are not encrypted."
)
FIGURES = (
    *("leak", "success", "success_unlabeled", "f1", "success_top5", "test_success", "test_leak"),
    *("tpr_at_1e-2", "recall", "precision", "read_99", "r2_monotone", "r2_linear", "within_tenth"),
    *("untrained_leak", "logistic_leak", "all_labels_leak"),
)
"""The stored figures of attacks of which ``leaks`` has means over seeds, if a sweep has them."""
CONFIGURATIONS = (
    "Means over seeds: utility on test rows, and what each attack reads of rows whose labels it does not know. "
    "An oracle knows more than an attacker can, and no verdict rests on it. "
    "An attack that is settled was not run, because the cheaper one that is named had read nearly all."
)
COLUMNS = (
    "How each column of the user's table was read, who owns it, and how many rows have no value."
)
SECONDS = (
    "Wall-clock seconds of the machine that ran it, the slowest attack first, with all variants of an attack. "
    "Compiling includes waiting for it, running includes scoring, and the host reads, writes and fits "
    "learners. Runs of an attack include those on its baselines. Of the programs of training only the epochs "
    "are counted, of an attack everything."
)


def sections(judged: Judged, extra: Sequence[Section] = ()) -> list[Section]:
    """Returns every table of the report that has rows.

    Args:
      judged: the sweep.
      extra: the caller's sections, which follow those on verdicts.
    """
    bound = "Label differential privacy: what ε allows, what attacks reached"
    every = (
        Section(
            "Verdicts on all configurations",
            verdict_tables.caption(judged),
            verdict_tables.verdict_table(judged),
        ),
        Section("What the verdicts mean", verdict_tables.MEANING, verdict_tables.meanings(judged)),
        Section(
            "By the number of known labels",
            verdict_tables.KNOWLEDGE,
            verdict_tables.by_knowledge(judged),
        ),
        Section(
            "Published attacks, and those that know more",
            verdict_tables.UNPUBLISHED,
            verdict_tables.published(judged),
        ),
        *extra,
        Section(bound, guarantees.caption(judged), guarantees.bound_table(judged)),
        Section("Controls: permuted labels", controls.CAPTION, controls.control_table(judged)),
        Section("What each attack reads", CONFIGURATIONS, _configurations(judged)),
        Section("Attacks", "", _attacks(judged)),
        Section("Columns of the table", COLUMNS, _columns(judged)),
        Section(
            "What the trees told each party" if judged.grown else "How the exchange was recorded",
            TOLD if judged.grown else RECORDED,
            _recorded(judged),
        ),
        Section(
            "Seconds of training and of each attack",
            SECONDS,
            seconds(judged.sweep.results, judged.attacks),
        ),
    )
    return [section for section in every if len(section.frame)]


def _configurations(judged: Judged) -> pd.DataFrame:
    """Returns a row for each configuration and panel: utility, and the mean leak of every attack."""
    attacked = judged.rows[judged.rows["role"] != "learner"]
    oracle = attacked["role"].eq("oracle").map({True: " (oracle)", False: ""})
    named = attacked.assign(label=attacked["label"] + oracle)
    place = ["configuration", "panel"]
    means = named.groupby([*place, "label"], sort=False)["leak"].mean().dropna()
    settled = "settled by " + settlers(named, [*place, "label"])
    cells = pd.concat([means.map(figure), settled[~settled.index.isin(means.index)]])
    if not len(cells):
        return pd.DataFrame()
    cells = cells.unstack(fill_value=NONE).reindex(columns=cells.index.unique("label"))
    first = judged.leading.set_index(place)
    table = pd.DataFrame(
        {
            "configuration": first["label"],
            "federation": first.index.get_level_values("panel").map(PANELS),
            judged.facts.utility: first["utility"].map(figure),
        }
    )
    return table.join(cells, how="inner").reset_index(drop=True)


def _attacks(judged: Judged) -> pd.DataFrame:
    """Returns a row for each attack variant: what it was given, and its own and published steps."""
    trained = {KINDS[name.split("-")[0]] for name in judged.trials["federation"].unique()}
    rows = []
    for entry in judged.attacks.values():
        if entry["status"] == "skipped":
            rows.append({"attack": entry["label"], "federation": "skipped: " + entry["reason"]})
            continue
        kinds = [KINDS[kind] for kind in entry["federations"]]
        known = ", ".join(f"{p['known']:g}" for p in entry["knobs"] if "known" in p) or "0"
        rows.append(
            {
                "attack": title(entry),
                "federation": ", ".join(k for k in kinds if k in trained) or "none",
                "known labels": entry.get("labels") or known,
                "oracle or diagnostic": "yes" if entry.get("oracle") else "no",
                "optimizer steps": f"{entry['steps']:,}",
                "published steps": f"{steps_published(entry['attack']):,}",
                "seconds": f"{entry['seconds']:.1f}",
                "trials": str(entry["trials"]),
            }
        )
    return pd.DataFrame(rows).fillna("")


def title(entry: Mapping[str, Any]) -> str:
    """Returns an attack's label; with the number of its rule if this version has another one.

    Args:
      entry: of ``store.attack_summary``.
    """
    present = attack_table.TABLE.get(entry["attack"])
    rule = store.identity_of(entry).rule
    if present is None or present.rule == rule:
        return entry["label"]
    return f"{entry['label']} (rule {rule}; this version has rule {present.rule})"


def steps_published(attack: str) -> int:
    """Returns the published attack's optimizer steps; 0 if it trains nothing or is the local-only baseline."""
    return 0 if attack == store.LOCAL_ONLY_VARIANT else attack_table.TABLE[attack].published_steps


def seconds(results: pa.Table, attacks: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Returns rows for training, each attack with all its variants, and all attacks: seconds, of which tracing,
    compiling, running and the host's, runs, milliseconds per run, the seconds as a share of training's, and the
    number of compiled programs.

    Args:
      results: of the sweep.
      attacks: as of ``store.attack_summary``.
    """
    of_trials = [x or 0.0 for x in results["seconds"].to_pylist()]
    trained = sum(of_trials)
    kinds = ["tracing", "compiling", "running"]  # of an attack; the host's seconds are the others
    names = ["seconds", *kinds, "rows", "compiles"]
    ran = [entry for entry in attacks.values() if entry["status"] != "skipped" and entry["trials"]]
    found = pd.DataFrame([[e["attack"], *(e[n] for n in names)] for e in ran], columns=["", *names])
    of_attacks = found.groupby("", sort=False).sum().sort_values("seconds", ascending=False)
    every = of_attacks.sum().to_frame("all attacks").T

    def line(name: Any, of: Mapping[str, float]) -> list[str]:
        whole, runs = of["seconds"], int(of["rows"])
        parts = [f"{of[kind]:.1f}" if kind in of else NONE for kind in kinds]
        host = f"{whole - sum(of[k] for k in kinds):.1f}" if "tracing" in of else NONE
        each = f"{1e3 * whole / runs:.1f}" if runs else NONE
        of_training = f"{whole / trained:.2f}" if trained else NONE
        compiles = str(int(of["compiles"])) if "compiles" in of else ""
        return [str(name), f"{whole:.1f}", *parts, host, f"{runs:,}", each, of_training, compiles]

    lines = [
        line("training", {"seconds": trained, "rows": len(of_trials)}),
        *(line(name, dict(of)) for frame in (of_attacks, every) for name, of in frame.iterrows()),
    ]
    header = ["", "seconds", *kinds, "host", "runs", "ms a run", "training is 1", "compiles"]
    return pd.DataFrame(lines, columns=header)


def _columns(judged: Judged) -> pd.DataFrame:
    """Returns a row for each column of a user's table: its owner, and how it was read. Without rows for other
    data sets, and for sweeps whose header does not have it."""

    def owner(source: Mapping[str, Any]) -> str:
        if source["read_as"] == "label":
            return "label"
        party = source["owner"]
        return "no party" if party is None else judged.experiment.parties.name_of(party)

    def categories(source: Mapping[str, Any]) -> str:
        pooled = f" ({source['pooled']:,} rare ones pooled)" if source["pooled"] else ""
        return f"{source['categories']:,}{pooled}" if source["categories"] else NONE

    sources = judged.sweep.header["data"].get("sources", ())
    rows = [
        {
            "column": source["name"],
            "owner": owner(source),
            "read as": source["read_as"],
            "missing": f"{source['missing']:,}",
            "categories kept": categories(source),
            "note": source["note"],
        }
        for source in sources
    ]
    return pd.DataFrame(rows)


def _recorded(judged: Judged) -> pd.DataFrame:
    """Returns a row for each run and party of a recorded exchange; none for what was trained here."""
    every = judged.sweep.header.get("recorded", {}).values()
    rows = [
        {
            "method": of["method"],
            "run": of["run"],
            "party": judged.experiment.parties.name_of(of["party"]),
            "rows": f"{of['rows']:,}",
            "never sent": f"{of['never']:,}",
            "width": f"{of['width']:,}",
            "own columns": of["columns"] or "not recorded",
            "messages": NONE if of["messages"] is None else f"{of['messages']:,}",
            "rows of messages": f"{of['entries']:,}",
            "without an answer": NONE if of["unanswered"] is None else f"{of['unanswered']:,}",
            "epochs": f"{of['epochs']:,}" + " (packed)" * of["packed"],
            "epochs left out": of["silent"],
        }
        for recording in every
        for of in recording
    ]
    return pd.DataFrame(rows)


def leaks(judged: Judged) -> pd.DataFrame:
    """Returns the figures of every attack on every configuration and federation, as means over seeds.

    The columns are ``configuration, panel, attack, federation, known, role, seeds``, those of ``FIGURES`` that
    the sweep has, and ``settled_by`` if some rows are settled: the labels of those who settled some of the
    other seeds.
    """
    rows = judged.rows[judged.rows["role"] != "learner"]
    rows = rows[rows["leak"].notna() | (rows["settled_by"] != "")]
    label = judged.verdicts.drop_duplicates("configuration").set_index("configuration")["label"]
    rows = rows.assign(attack=rows["label"])
    names = ["configuration", "panel", "attack", "federation", "known", "role"]
    # of several classes some figures are lists, one number a class
    figures = [name for name in FIGURES if name in rows and is_numeric_dtype(rows[name])]
    of = rows.groupby(names, sort=False)
    table = of[figures].mean()
    table.insert(0, "seeds", of["leak"].count())
    settled = settlers(rows, names)
    if len(settled):
        table["settled_by"] = settled.reindex(table.index).fillna("")
    table = table.reset_index().sort_values("configuration", kind="stable", ignore_index=True)
    return table.assign(configuration=table["configuration"].map(label))


def csv_text(frame: pd.DataFrame) -> str:
    """Returns a frame as the text of a CSV file."""
    return frame.to_csv(index=False, float_format="%.4f", lineterminator="\n")


def markdown(frame: pd.DataFrame) -> str:
    """Returns a frame of text as a Markdown table."""
    lines = [[*frame.columns], ["---"] * len(frame.columns), *frame.to_numpy().tolist()]
    cells = ([str(cell).replace("|", "/").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
