"""Realistic bugs, and whether the tests catch them: ``python tests/mutants.py [--only NAME ...]``.

A mutant names no file and no test, so that the list survives moves of both: it belongs to the one file of
``ROOTS`` that holds its ``before`` exactly once. ``before`` avoids local names. Which tests are to catch it
comes from a run of the whole suite with coverage by test, of which ``--coverage FILE`` keeps the result and
its times (FILE.xml) for later calls on the same checkout. Tests that did not pass there take no part.

Mutants are applied one at a time in a temporary copy of the checkout. Each is tried by tests that run a line
of ``before``, then by others that run its file: of what tests share, such as a trained sweep or a traced
function, coverage knows only the first test that ran a line. A module that no test runs in its own process is
tried by the test files that name it. A run that exceeds ``--limit`` seconds of processor time counts as
caught, but is told apart.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from coverage import CoverageData

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOTS = ("vfljax", "analysis")
LIMIT = 60  # seconds of processor time
# times as long by the clock: longer than a busy machine takes, and some bugs wait for ever
WAIT = 10
SECONDS = 40  # of the tests that are tried together, as the run with coverage measured them
CAUGHT = ("caught", "TOO LONG")
# imported once, for all processes that try a mutant: they take longer than most tests
LIBRARIES = (
    *("jax", "flax.linen", "optax", "orbax.checkpoint", "matplotlib.figure"),
    *("pandas", "pyarrow.parquet", "scipy.stats", "sklearn.ensemble", "xarray"),
)


class Mutant(NamedTuple):
    """One bug: ``before`` stands once in all of ``ROOTS`` and is replaced by ``after``."""

    name: str
    before: str
    after: str


PROTOCOL = (
    Mutant(
        "draws-repeat-within-an-epoch",
        'keys.fold(state.run_key, "step", state.step)\n        context',
        'keys.fold(state.run_key, "step", epoch)\n        context',
    ),
    Mutant(
        "parties-share-their-dropout",
        'params), x, True, keys.fold(key, "bottom", p)',
        'params), x, True, keys.fold(key, "bottom")',
    ),
    Mutant(
        "accuracy-on-unread-codes",
        "scores = defense.read(defense_state, logits)",
        "scores = logits",
    ),
    Mutant("every-party-as-malicious-as-the-first", "hparams.gamma[p]", "hparams.gamma[0]"),
    Mutant("every-party-deviates-as-the-first", "hparams.strength[p]", "hparams.strength[0]"),
    Mutant(
        "absent-parties-learn", "< spec.passive, -1.0, strength", "< spec.passive, 0.0, strength"
    ),
    Mutant(
        "canaries-counted-where-chosen",
        "Guesses(panel, label, r, count)",
        "Guesses(panel, label, guessed, chosen)",
    ),
    Mutant(
        "gradients-through-denoised-labels",
        "denoised(jax.lax.stop_gradient(logits), o, epsilon)",
        "denoised(logits, o, epsilon)",
    ),
    Mutant(
        "true-heads-send-gradients",
        "self.second(jax.lax.stop_gradient(x), train=train)",
        "self.second(x, train=train)",
    ),
    Mutant("swapped-in-every-batch-at-once", "(len(z), 1)) < strength", "(1, 1)) < strength"),
    Mutant("weighted-loss-over-rows-not-weights", "/ jnp.sum(weighted)", "/ len(weighted)"),
    Mutant(
        "exchange-holds-undefended-gradients",
        "received[: spec.passive]",
        "cut_gradients[: spec.passive]",
    ),
    Mutant(
        "epoch-begins-a-step-early",
        "state.step // spec.steps_per_epoch",
        "(state.step + 1) // spec.steps_per_epoch",
    ),
    Mutant(
        "training-accuracy-on-randomized-labels",
        "jnp.argmax(scores, -1) == batch.labels",
        "jnp.argmax(scores, -1) == context.labels",
    ),
    Mutant("milestone-an-epoch-late", "epoch >= hparams.milestones", "epoch > hparams.milestones"),
    Mutant(
        "released-rule-is-the-torch2-rule",
        "trace_released(hparams.momentum, gamma)",
        "trace_released_torch2(hparams.momentum, gamma)",
    ),
    Mutant("votes-of-the-last-epoch-alone", "s.sign + jnp.sign(g)", "jnp.sign(g)"),
    Mutant("rows-never-sent-are-counted", "s.count + was_sent", "s.count + 1"),
    Mutant("left-over-batch-weighs-as-one-row", "batch_metrics.loss * rest", "batch_metrics.loss"),
    Mutant("recorded-places-not-inverted", "jnp.argsort(jnp.argsort(place))", "jnp.argsort(place)"),
    Mutant(
        "oriented-by-test-labels", "jnp.where(inverted, 1 - auc, auc)", "jnp.maximum(auc, 1 - auc)"
    ),
    Mutant("colluders-share-their-dropout", "None if key is None else keys.fold(key, p)", "key"),
    Mutant("stale-batch-statistics", "{**variables, **moved}", "{**moved, **variables}"),
    Mutant(
        "every-seed-starts-from-the-first-weights",
        "lambda a: a[member.seed], initial",
        "lambda a: a[0], initial",
    ),
    Mutant(
        "every-epoch-has-the-same-order",
        'keys.fold(keys.run_key(seed), "order", number), rows',
        'keys.fold(keys.run_key(seed), "order"), rows',
    ),
    Mutant(
        "every-trial-reads-the-first-teacher",
        "table.scores[member.teacher, index]",
        "table.scores[0, index]",
    ),
)

DEFENSES = (
    Mutant(
        "parties-share-their-noise",
        "rule(keys.fold(context.key, i), g, context)",
        "rule(context.key, g, context)",
    ),
    Mutant(
        "later-targets-see-true-labels",
        "context = changed._replace(",
        "context = context._replace(",
    ),
    Mutant(
        "later-members-start-from-true-labels",
        "labels=member.labels(states[name], data.labels)",
        "labels=data.labels",
    ),
    Mutant(
        "randomized-response-over-one-class-more",
        "(jnp.asarray(count) - 1) * jnp.exp(-epsilon)",
        "jnp.asarray(count) * jnp.exp(-epsilon)",
    ),
    Mutant(
        "a-flipped-label-may-be-itself", "place + (place >= position)", "place + (place > position)"
    ),
    Mutant(
        "one-class-more-counts-as-top",
        "jnp.where(rank < k, within, outside)",
        "jnp.where(rank <= k, within, outside)",
    ),
    Mutant(
        "teacher-is-handed-the-other-half",
        "jnp.where(first, drawn, 0)",
        "jnp.where(first, drawn, labels)",
    ),
    Mutant(
        "noise-across-of-the-other-class",
        "jnp.where(positive, l21, l20)",
        "jnp.where(positive, l20, l21)",
    ),
    Mutant(
        "noisy-labels-share-the-critics-draw",
        'keys.fold(key, "response")',
        'keys.fold(key, "real")',
    ),
    Mutant("delta-chosen-by-unoriented-auc", "np.maximum(auc, 1 - auc)[:, None]", "auc[:, None]"),
    Mutant(
        "dcor-gradient-a-batch-too-large", "2 * slope / (z.shape[0] ** 2)", "2 * slope / z.shape[0]"
    ),
    Mutant(
        "a-class-is-ahead-of-itself",
        "jnp.tri(scores.shape[-1], k=-1, dtype=bool)",
        "jnp.tri(scores.shape[-1], k=0, dtype=bool)",
    ),
    Mutant(
        "one-entry-fewer-is-kept",
        "jnp.sum(bits >= candidate) >= count",
        "jnp.sum(bits >= candidate) > count",
    ),
    Mutant(
        "levels-from-the-first-step-alone",
        "first = context.epoch == 0",
        "first = context.step == 0",
    ),
    Mutant(
        "isotropic-noise-by-rows-not-columns",
        "longest / jnp.sqrt(g.shape[-1])",
        "longest / jnp.sqrt(g.shape[0])",
    ),
    Mutant("max-norm-drops-a-root", "jnp.sqrt(ratio + 1)", "jnp.sqrt(ratio)"),
    Mutant("one-entry-beyond-the-quota", "& (left > 0)", "& (left >= 0)"),
    Mutant("detection-bound-not-squared", "<= (2 - 4 * error) ** 2", "<= 2 - 4 * error"),
    Mutant(
        "budget-not-divided-among-entries",
        "2.0 * count * sensitivity / epsilon",
        "2.0 * sensitivity / epsilon",
    ),
)

ATTACKS = (
    Mutant("epoch-number-taken-as-place", "jnp.argmax(view.epochs == epoch)", "epoch"),
    Mutant(
        "rows-never-sent-are-scored-by-batch", "jnp.where(self.sent, self.rows, rows)", "self.rows"
    ),
    Mutant(
        "rows-never-sent-move-the-median",
        "jnp.nanmedian(jnp.where(sent, score, jnp.nan))",
        "jnp.nanmedian(score)",
    ),
    Mutant(
        "every-row-was-sent-in-some-epoch",
        "jnp.maximum(count, 1)[:, None], count > 0",
        "jnp.maximum(count, 1)[:, None], count >= 0",
    ),
    Mutant(
        "malicious-steps-may-shrink",
        "jnp.clip(1 + gamma * ratio, 1.0, 5.0)",
        "jnp.clip(1 + gamma * ratio, 0.0, 5.0)",
    ),
    Mutant(
        "colluders-entries-interleaved",
        "x.reshape(len(x), -1, num_classes)",
        "x.reshape(len(x), num_classes, -1).swapaxes(1, 2)",
    ),
    Mutant(
        "center-ties-go-to-the-first-class",
        "num_classes - 1 - jnp.argmax(near[:, ::-1], axis=-1)",
        "jnp.argmax(near, axis=-1)",
    ),
    Mutant("the-median-row-is-positive", "sums > jnp.nanmedian(", "sums >= jnp.nanmedian("),
    Mutant(
        "k-means-keeps-its-worst-start",
        "clusters[jnp.argmin(inertia)]",
        "clusters[jnp.argmax(inertia)]",
    ),
    Mutant(
        "ramp-ends-with-the-first-draws",
        "jnp.minimum(1.0, number / steps)",
        "jnp.minimum(1.0, number / drawn)",
    ),
    Mutant(
        "known-rows-among-the-unlabeled",
        "jnp.where(known.count >= rows, 0, known.count)",
        "jnp.int32(0)",
    ),
    Mutant(
        "squared-error-summed-over-classes",
        "jnp.mean(error**2)",
        "jnp.mean(jnp.sum(error**2, axis=-1))",
    ),
    Mutant(
        "spread-over-rows-never-sent",
        "jnp.sum(x * x, axis=0, keepdims=True) / count",
        "jnp.sum(x * x, axis=0, keepdims=True) / len(x)",
    ),
    Mutant(
        "missing-hints-are-any-known-row",
        "jnp.where(places >= 0, places, places[0])",
        "jnp.where(places >= 0, places, 0)",
    ),
    Mutant("rows-never-sent-are-neighbors", "itself | ~sent[None, :]", "itself"),
    Mutant(
        "known-rows-never-sent-are-neighbors",
        "jnp.where(sent[row], metric.likeness(x, x[row]), -jnp.inf)",
        "metric.likeness(x, x[row])",
    ),
)

SCORING = (
    Mutant(
        "one-known-label-too-few",
        "unlabeled = sent * (_revealed(true, i, turn) >= output.known)",
        "unlabeled = sent * (_revealed(true, i, turn) > output.known)",
    ),
    Mutant(
        "every-draw-of-known-rows-is-the-first",
        "in_turn = common.known_order[draw * len(common.train) + seed]",
        "in_turn = common.known_order[seed]",
    ),
    Mutant(
        "every-draw-scored-as-the-first",
        "order = true.known_order[draw * len(true.labels) + seed]",
        "order = true.known_order[seed]",
    ),
    Mutant(
        "who-knows-labels-is-turned-too", "jnp.where(output.known > 0, its_own, names)", "names"
    ),
    Mutant(
        "rows-that-name-classes-are-scored",
        "sent * (revealed >= output.known) * (revealed >= naming)",
        "sent * (revealed >= output.known)",
    ),
    Mutant(
        "copies-of-known-rows-are-scored",
        "if true.groups is None:\n        return turn",
        "if True:\n        return turn",
    ),
    Mutant(
        "classes-are-named-by-the-rows-that-are-scored",
        "jnp.where(jnp.sum(naming_rows) > 0, naming_rows, scored)",
        "scored",
    ),
    Mutant(
        "test-rows-are-turned-to-read-more",
        "metrics.leak_named(scores.test, names, labels)",
        "metrics.leak(scores.test, labels)",
    ),
    Mutant(
        "certain-rows-under-the-attack-s-own-names",
        "certainty(by_name, labels, scored, true.positive[i])",
        "certainty(scores.train, labels, scored, true.positive[i])",
    ),
    Mutant(
        "a-guess-at-an-unsent-row-is-a-guess",
        "jnp.all(jnp.isfinite(scores.train), axis=-1) & output.sent",
        "jnp.all(jnp.isfinite(scores.train), axis=-1)",
    ),
    Mutant("ties-are-losses-in-the-auc", "(below[left] + below[right]) / 2", "below[left]"),
    Mutant(
        "recall-over-absent-classes-too",
        "jnp.sum(values * present) / jnp.maximum(present.sum(), 1.0)",
        "jnp.sum(values * present) / len(values)",
    ),
    Mutant(
        "a-diverged-draw-counts-as-zero",
        "np.float32(np.sum(~np.isnan(draws), axis=0))",
        "np.float32(len(draws))",
    ),
    Mutant(
        "scored-on-the-last-epoch-whatever-is-read",
        'inputs.exchange["sum_count"] > 0 if attack.epoch is None else sent',
        "sent",
    ),
    Mutant(
        "whoever-knows-more-settles",
        'if cost < job["cost"] and known <= job["known"]',
        'if cost < job["cost"]',
    ),
    Mutant(
        "a-word-that-occurs-twice-counts-twice", "codes.data[:] = 1.0", "codes.data[:] = codes.data"
    ),
)

SUMMARY = (
    Mutant(
        "population-deviation-of-seeds", "squares.sum(-1) / (count - 1)", "squares.sum(-1) / count"
    ),
    Mutant("error-of-a-mean-by-the-count", "* spread / np.sqrt(count)\n", "* spread / count\n"),
    Mutant(
        "no-utility-may-be-lost",
        "facts.goal.max_cost < 1 else MEAN_LOSS",
        "facts.goal.max_cost < 1 else 0.0",
    ),
    Mutant(
        "a-leak-is-said-of-a-mean",
        "leaks = lower > EXCESS",
        "leaks = compared.excess.mean > EXCESS",
    ),
    Mutant(
        "an-excess-below-the-baseline",
        "np.where(any_figure, np.maximum(excess, 0), np.nan)",
        "np.where(any_figure, excess, np.nan)",
    ),
    Mutant(
        "undefended-keeps-attacks-that-were-not-run",
        "np.where(had, leaks[..., :1, :, :], np.nan)",
        "np.where(True, leaks[..., :1, :, :], np.nan)",
    ),
    Mutant(
        "another-utility-is-undefended-too",
        "same &= (_equal(by_seed(trials, name, order, seeds)) | ~trained).all(-1)",
        "same &= trained.any(-1)",
    ),
    Mutant(
        "every-attack-beside-the-learner-of-any-draws",
        "by_draws.reindex(pd.MultiIndex.from_arrays(at))",
        "by_attackers.reindex(pd.MultiIndex.from_arrays(at[::2]))",
    ),
    Mutant(
        "chosen-by-its-loss-before-its-leak",
        '["incomplete", "leak", "e_upper", "validation_loss"], kind="stable"',
        '["incomplete", "validation_loss", "leak", "e_upper"], kind="stable"',
    ),
    Mutant(
        "of-equal-leaks-the-least-loss",
        '"leak", "e_upper", "validation_loss"], kind="stable"\n    )',
        '"leak", "validation_loss"], kind="stable"\n    )',
    ),
    Mutant(
        "recommended-by-its-loss-before-its-leak",
        'candidates.sort_values(["leak", "e_upper", "validation_loss"]',
        'candidates.sort_values(["validation_loss", "leak", "e_upper"]',
    ),
    Mutant(
        "units-in-no-order-of-stages",
        "return sorted(units, key=lambda unit: unit.stage)",
        "return units",
    ),
    Mutant("a-spent-budget-begins-units", "return time.monotonic() < end", "return True"),
    Mutant(
        "who-is-named-by-labels-knows-none",
        'rows["known"].where(~free, naming.fillna(0).astype(int))',
        'rows["known"]',
    ),
    Mutant("training-auc-of-inverted-runs", "seed: max(auc, 1 - auc)", "seed: auc"),
    Mutant("reach-with-a-class-missing-in-folds", ".min() < FOLDS", ".max() < FOLDS"),
    Mutant(
        "own-layers-are-diagnostics",
        "(bool(attack.diagnostic) and not owns_layer)",
        "bool(attack.diagnostic)",
    ),
    Mutant(
        "operating-points-chosen-on-test-rows",
        '"validation_utility": "validation"}',
        '"validation_utility": "test"}',
    ),
    Mutant(
        "nothing-to-protect-though-undefended-is-incomplete",
        "(compared.undefended.upper < EXCESS) & complete[..., :1]",
        "compared.undefended.upper < EXCESS",
    ),
    Mutant(
        "a-diverged-federation-loses-nothing",
        "loss = np.where(np.isfinite(loss), loss, facts.guess)\n",
        "loss = np.where(np.isfinite(loss), loss, loss[:1])\n",
    ),
    Mutant(
        "of-equally-rare-classes-the-first-is-positive",
        'options.get("positive") or first >= last',
        'options.get("positive") or first > last',
    ),
)

DATASETS = (
    Mutant("one-balanced-row-too-many", "(c < most % len(classes))", "(c <= most % len(classes))"),
    Mutant("four-channels-are-not-last", "features.shape[3] > 4", "features.shape[3] >= 4"),
    Mutant(
        "dates-count-from-the-test-file-s-first",
        "training = ~place.test & ~missing",
        "training = ~missing",
    ),
    Mutant(
        "test-rows-choose-the-categories",
        "training = texts.codes[~place.test]\n",
        "training = texts.codes\n",
    ),
    Mutant(
        "a-category-of-the-test-file-alone-is-another-column",
        "places if part.min() >= 0 else places[part >= 0]",
        "places",
    ),
    Mutant(
        "the-working-folder-before-the-table-s",
        "beside if beside.exists() or not here.exists() else here",
        "here if here.exists() else beside",
    ),
    Mutant(
        "copies-may-differ-in-their-label",
        "len(labels), (labels, *columns)",
        "len(labels), (*columns,)",
    ),
    Mutant(
        "copies-of-test-rows-are-trained-on",
        "rest = rest[~np.isin(dataset.groups[rest], dataset.groups[held])]",
        "rest = rest.copy()",
    ),
    Mutant(
        "the-last-group-is-in-two-parts", "rest = queue[rank[queue] > edge]", "rest = queue[size:]"
    ),
    Mutant(
        "an-earlier-version-s-conversion-is-reused",
        "parts = [name, version, prepared.SCHEMA, options, read]",
        "parts = [name, prepared.SCHEMA, options, read]",
    ),
    Mutant(
        "a-trailing-separator-shifts-the-columns",
        "(skipinitialspace=True, index_col=False)",
        "(skipinitialspace=True)",
    ),
    Mutant("coarse-labels-in-place-of-fine-ones", "part[:, binary.label_bytes - 1]", "part[:, 0]"),
    Mutant(
        "words-of-test-texts-are-chosen-too",
        "[text for _, text in parts[0]]",
        "[text for part in parts for _, text in part]",
    ),
    Mutant(
        "unknown-patients-are-one-patient",
        '[owner or f"row {row}" for row, owner',
        "[owner for row, owner",
    ),
)

AUDITS = (
    Mutant(
        "copies-of-a-row-lie-in-several-folds",
        "np.unique(of_group, return_counts=True)[1].min() >= FOLDS",
        "np.unique(of_group).size > len(groups)",
    ),
    Mutant(
        "the-exchange-after-is-the-one-before",
        "_exchange(wires[defended][seed])",
        "_exchange(wires[0][seed])",
    ),
    Mutant(
        "contract-tried-with-two-classes-alone", "(2,) if row.two_classes else (2, MANY)", "(2,)"
    ),
    Mutant(
        "neutral-knobs-may-change-bits",
        "np.array_equal(x, y, equal_nan=equal_nan)",
        "np.allclose(x, y, equal_nan=equal_nan)",
    ),
)

SURFACE = (
    Mutant(
        "nan-is-in-every-range",
        "number and low <= value <= most",
        "number and not (value < low or value > most)",
    ),
    Mutant("a-leak-above-the-limit-exits-as-a-mistake", "status = 3", "status = 2"),
    Mutant(
        "gain-to-be-kept-is-not-asked-for",
        '{"max_cost": max_cost, "keep_gain": keep_gain}',
        '{"max_cost": max_cost}',
    ),
    Mutant(
        "an-option-given-twice-is-the-last",
        "if name in out:\n                remedy",
        "if name in ():\n                remedy",
    ),
    Mutant("trials-without-attacks-are-left-out", 'on="trial", how="left"', 'on="trial"'),
    Mutant(
        "difference-of-a-and-not-of-b",
        "limits(np.where(both, y - x, np.nan), least)",
        "limits(np.where(both, x - y, np.nan), least)",
    ),
)

STORAGE = (
    Mutant("checksums-are-never-compared", "if digest(path) != expected:", "if not digest(path):"),
    Mutant(
        "results-in-the-order-of-shards",
        'results.sort_by("trial") if results.num_rows else results',
        "results",
    ),
    Mutant("exchange-of-the-first-lane", "name: array[self.member]", "name: array[0]"),
    Mutant("weights-of-the-first-lane", ".result()[member]", ".result()[0]"),
    Mutant("half-the-width-is-never-tried", "max(width // 2 - 1, 0)", "max(width // 2, 0)"),
    Mutant(
        "one-order-more-than-fits-is-kept",
        "len(self._kept) < self._most",
        "len(self._kept) <= self._most",
    ),
    Mutant("divergence-dated-to-its-last-epoch", "int(broken[0])", "int(broken[-1])"),
    Mutant(
        "the-width-of-the-older-save",
        "return sorted(map(int, saves), reverse=True)",
        "return sorted(map(int, saves))",
    ),
    Mutant(
        "a-save-removes-itself",
        "if before is None or save < before:",
        "if before is None or save <= before:",
    ),
    Mutant(
        "members-in-the-order-of-their-places",
        "np.minimum(np.argsort(self.places()), count - 1)",
        "np.minimum(self.places(), count - 1)",
    ),
)

DAMAGE = (
    Mutant(
        "a-renamed-folder-is-believed",
        '(record[KIND], record["sweep"]) != (unit, sweep)',
        'record["sweep"] != sweep',
    ),
    Mutant(
        "a-record-s-own-sum-is-not-compared",
        "SEAL in record and seal(record)[SEAL] != record[SEAL]",
        "SEAL not in seal(record)",
    ),
    Mutant("no-copy-of-a-record-is-read", "for path in (main, copy):", "for path in (main,):"),
    Mutant(
        "a-full-disk-is-known-by-its-number-alone",
        "any(text in str(error) for text in FULL_TEXTS)",
        'error.args == ("full",)',
    ),
    Mutant(
        "leftovers-of-dead-writers-stay",
        "for name in [*folders, *files]:\n            match",
        "for name in files:\n            match",
    ),
    Mutant(
        "what-others-write-now-is-removed",
        "if match is not None and not _lives(int(match[1])):",
        "if match is not None:",
    ),
    Mutant(
        "the-old-save-goes-first",
        "if not (workdir / unit).exists():  # the same epochs",
        "remove((workdir / unit).parent)\n    if not (workdir / unit).exists():  # the same epochs",
    ),
    Mutant(
        "a-unit-replaces-another-process-s",
        "if keep and path.is_dir():",
        "if keep and path.is_file():",
    ),
    Mutant(
        "a-unit-goes-over-one-that-came-meanwhile",
        "error.errno not in (errno.ENOTEMPTY, errno.EEXIST)",
        "error.errno not in (errno.EEXIST,)",
    ),
    Mutant(
        "saved-rows-are-attacked-again",
        "todo = [job for job in left if job.key not in rows]",
        "todo = left",
    ),
    Mutant(
        "an-earlier-rule-s-rows-are-damage",
        "units = [unit.name for unit in units_of(header, outdated=True)]",
        "units = [unit.name for unit in units_of(header)]",
    ),
    Mutant(
        "what-is-set-aside-is-overwritten",
        'while (folder / f"{name}.{number}").exists():',
        "while number < 0:",
    ),
)

LAUNCHING = (
    Mutant("a-death-is-no-failure", '"why": DIED', '"why": ""'),
    Mutant(
        "an-interrupt-is-a-failure",
        "    except BaseException:\n        path.unlink(missing_ok=True)\n        raise",
        "    except BaseException:\n        raise",
    ),
    Mutant("a-dear-attack-does-not-wait", "and waited.isdisjoint(unit.after)", ""),
    Mutant(
        "what-needs-a-lost-unit-is-waited-for",
        "(missing and missing > most) or not may(unit)",
        "not may(unit)",
    ),
    Mutant(
        "a-dead-worker-has-no-successor",
        "missing = len(failures) if handles else engine.jobs",
        "missing = 0 if turn else engine.jobs",
    ),
    Mutant("plugins-stay-at-home", "for source in worker.plugins:", "for source in ():"),
    Mutant(
        "an-elsewhere-planned-width-is-chosen-anew",
        'devices = header["devices"] if same else jax.device_count()',
        "devices = jax.device_count()",
    ),
    Mutant(
        "rounded-products-follow-the-default-precision",
        'result = {"precision": None, "preferred',
        'result = {"preferred',
    ),
    Mutant(
        "a-changed-byte-is-trained-on",
        "prepared.verify(place)  # a changed byte",
        "prepared.read(place)  # a changed byte",
    ),
    Mutant(
        "workers-outlive-their-command",
        "                handle.cancel()",
        "                handle.ended()",
    ),
)

MUTANTS: tuple[Mutant, ...] = (
    *(*PROTOCOL, *DEFENSES, *ATTACKS, *SCORING, *SUMMARY, *DATASETS, *AUDITS, *SURFACE),
    *(*STORAGE, *DAMAGE, *LAUNCHING),
)


def copy_checkout(to: pathlib.Path) -> None:
    """The checkout's files, tracked and new, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # a deleted file is listed until the deletion is committed
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)


class Outcome(NamedTuple):
    """Of some tests, or of one mutant."""

    verdict: str
    by: str = ""  # the first test that failed


class FirstFailure:
    """A plugin of pytest that notes the first test, or test file, that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.name = self.name or report.nodeid * report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.name = self.name or report.nodeid * report.failed


def run_here(root: pathlib.Path, tests: Sequence[str], limit: int, answer: Any) -> None:
    """Runs tests of the copy in ``root`` in this process, which they may end; answers with their outcome."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    os.chdir(root)
    # what a mutant does not touch is compiled once
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.path[0] = os.environ["PYTHONPATH"] = str(root)
    with open(os.devnull, "r+") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    first = FirstFailure()
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *tests], plugins=[first])
    verdicts = {pytest.ExitCode.OK: "SURVIVED", pytest.ExitCode.TESTS_FAILED: "caught"}
    verdicts[pytest.ExitCode.INTERRUPTED] = "caught"  # a test file cannot be imported
    answer.send((verdicts.get(code, "NO TESTS"), first.name))
    os._exit(0)  # without waiting for threads


def pytest_on(root: pathlib.Path, tests: Sequence[str], limit: int) -> Outcome:
    """The outcome of some tests of the copy in ``root``, in a process of their own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LIBRARIES])
    answer, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_here, args=(root, tests, limit, sender))
    process.start()
    assert process.pid is not None
    sender.close()
    outcome = Outcome("TOO LONG", f"no end after {limit} s")
    try:
        if answer.poll(limit * WAIT):
            outcome = Outcome(*answer.recv())
    except EOFError:  # nothing was answered: the process was killed, by its limit or by the bug
        process.join()
        ended = process.exitcode or 0
        if ended not in (-signal.SIGXCPU, -signal.SIGKILL):
            verdict = "caught" if ended < 0 else "NO TESTS"
            outcome = Outcome(verdict, f"the process ended with {ended}")
    finally:
        process.kill()
        with contextlib.suppress(ProcessLookupError):  # and what the tests have started
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return outcome


def file_of(test: str) -> str:
    """The test file of a test's id."""
    return test.partition("::")[0]


# of coverage's files: how many files of code each test runs, by test and phase
FILES_RUN = """
    select context, count(distinct file_id) from context join
    (select context_id, file_id from arc union all select context_id, file_id from line_bits)
    on context.id = context_id group by context
"""


class Suite:
    """Which tests run which lines, and how long they take."""

    def __init__(self, file: pathlib.Path) -> None:
        self._data = CoverageData(str(file))
        self._data.read()
        self._files_run = collections.Counter()
        with contextlib.closing(sqlite3.connect(file)) as tables:
            for context, count in tables.execute(FILES_RUN):
                self._files_run[context.rpartition("|")[0]] += count
        self.seconds: dict[str, float] = {}  # by test, of those that passed
        self._of_file = collections.defaultdict(set)  # tests by their file
        for case in xml.etree.ElementTree.parse(f"{file}.xml").iter("testcase"):
            place = case.attrib["classname"].replace(".", "/")
            if case.find("failure") is None and case.find("error") is None:
                test = f"{place}.py::{case.attrib['name']}"
                self.seconds[test] = float(case.attrib["time"])
                self._of_file[file_of(test)].add(test)

    def by_line(self, name: str) -> dict[int, set[str]]:
        """The tests that run each line of a file, which is named by its path in the checkout. What a fixture
        runs serves all tests of its file."""
        tests = collections.defaultdict(set)
        for path in self._data.measured_files():
            if f"/{path}".endswith(f"/{name}"):
                for line, contexts in self._data.contexts_by_lineno(path).items():
                    for test, _, phase in (context.rpartition("|") for context in contexts):
                        tests[line] |= self._of_file[file_of(test)] if phase == "setup" else {test}
        return {line: of & self.seconds.keys() for line, of in tests.items()}

    def chosen(self, tests: Iterable[str], stem: str) -> list[str]:
        """Those of some tests that are tried for a module, as long as they take less than ``SECONDS``. Test
        files of the module's name come first, then one test of each function before the second of any, those
        that run few other modules first; by file, because tests of a file share what its fixtures make."""
        seen, rank = collections.Counter[str](), dict[str, tuple[bool, int, int]]()

        for test in sorted(tests, key=lambda test: (self._files_run[test], self.seconds[test])):
            function, other = test.partition("[")[0], not file_of(test).endswith(f"/{stem}_test.py")
            rank[test] = other, seen[function], len(rank)
            seen[function] += 1
        left, by_file = float(SECONDS), collections.defaultdict(list)
        for test in sorted(rank, key=rank.__getitem__):
            if self.seconds[test] <= left or not by_file:
                by_file[file_of(test)].append(test)
                left -= self.seconds[test]
        return [test for of in by_file.values() for test in of]


def run_suite(root: pathlib.Path, file: pathlib.Path) -> None:
    """Runs all tests of the copy in ``root``; writes what they cover, and their times."""
    cover = ["--cov=vfljax", "--cov=analysis", "--cov-context=test", "--cov-report="]
    print(f"running all tests with coverage: {file}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *cover, f"--junitxml={file}.xml"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COVERAGE_FILE": str(file)},
        check=False,  # tests that fail take no part
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            print(f"without any mutant: {line}", flush=True)


def places(snippet: str, root: pathlib.Path) -> list[pathlib.Path]:
    """The files of ``ROOTS`` that hold ``snippet``, each as often as it does."""
    files = sorted(path for name in ROOTS for path in (root / name).rglob("*.py"))
    return [path for path in files for _ in range(path.read_text().count(snippet))]


def tests_of(
    mutant: Mutant, path: pathlib.Path, root: pathlib.Path, suite: Suite
) -> Iterator[list[str]]:
    """Yields the tests that are to catch a mutant of the file ``path``, and others if these do not."""
    begin = path.read_text()[: path.read_text().index(mutant.before)].count("\n") + 1
    lines = range(begin, begin + mutant.before.rstrip("\n").count("\n") + 1)
    by_line = suite.by_line(path.relative_to(root).as_posix())
    running = {test for line in lines for test in by_line.get(line, ())}
    others = set().union(*by_line.values()) - running
    for tests in filter(None, (running, others)):
        yield suite.chosen(tests, path.stem)
    if not running | others:
        named = re.compile(rf"\b{path.stem}\b")
        files = sorted((root / "tests").rglob("*_test.py"))
        yield [str(f.relative_to(root)) for f in files if named.search(f.read_text())]


def write(path: pathlib.Path, text: str) -> None:
    """Writes a module so that bytecode of an earlier text of the same size is not taken for its own."""
    seconds = int(path.stat().st_mtime) - 1
    path.write_text(text)
    os.utime(path, (seconds, seconds))


def try_mutant(mutant: Mutant, root: pathlib.Path, suite: Suite, limit: int) -> Outcome:
    """One mutant in the copy in ``root``, which is restored."""
    holders = places(mutant.before, root)
    if len(holders) != 1:
        return Outcome("AMBIGUOUS" if holders else "NOT FOUND")
    (path,) = holders
    text, outcome = path.read_text(), Outcome("NO TESTS")
    groups = [*tests_of(mutant, path, root, suite)]
    write(path, text.replace(mutant.before, mutant.after))
    try:
        for tests in groups:
            outcome = pytest_on(root, tests, limit)
            if outcome.verdict in CAUGHT:
                break
        return outcome
    finally:
        write(path, text)


def run(mutants: Sequence[Mutant], file: pathlib.Path | None, limit: int) -> dict[str, Outcome]:
    """Every mutant's outcome by name, printed as they come."""
    outcomes, began = {}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vfljax_mutants_") as folder:
        root = pathlib.Path(folder) / "checkout"
        copy_checkout(root)
        file = (file or root.with_name("coverage")).absolute()
        if not file.exists():
            run_suite(root, file)
        suite = Suite(file)
        for mutant in mutants:
            start = time.monotonic()
            outcome = outcomes[mutant.name] = try_mutant(mutant, root, suite, limit)
            seconds = time.monotonic() - start
            line = f"{outcome.verdict:9} {seconds:6.1f} s  {mutant.name}  {outcome.by}"
            print(line.rstrip(), flush=True)
    kinds = [outcome.verdict for outcome in outcomes.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{len(kinds)} mutants: {counts}; {time.monotonic() - began:.0f} s")
    return outcomes


def main() -> int:
    """0 if every mutant was caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants, by name")
    what = "what the tests cover; without it, or if it is not there yet, all tests are run first"
    parser.add_argument("--coverage", type=pathlib.Path, metavar="FILE", help=what)
    what = "seconds of processor time of the tests that try a mutant"
    parser.add_argument("--limit", type=int, default=LIMIT, help=what)
    options = parser.parse_args()
    unknown = sorted(set(options.only or ()) - {mutant.name for mutant in MUTANTS})
    if unknown:
        parser.error(f"no mutant is called {', '.join(unknown)}")
    mutants = [m for m in MUTANTS if options.only is None or m.name in options.only]
    # programs that a mutant does not touch are not compiled again
    cache = pathlib.Path(tempfile.gettempdir()) / "vfljax_mutants_compiled"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in the tests, before libraries are imported
    outcomes = run(mutants, options.coverage, options.limit)
    return 0 if all(outcome.verdict in CAUGHT for outcome in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
