"""Realistic bugs, and whether the tests catch them: ``python tests/mutants.py [--only NAME ...]``.

A mutant names no file: it belongs to the one file of ``ROOTS`` that holds its ``before`` exactly
once, so that the list survives moves of code between files. ``before`` avoids local names. Mutants
are applied in a temporary copy of the checkout, one at a time, each against the test file that
mirrors the module it breaks, and ``more``. A run that takes longer than five minutes counts as caught,
but is told apart: on a busy machine that may be no more than the machine (``--limit``). ``--whole`` runs
survivors against the whole suite too, ``--clean`` the named mutants' tests without any mutant
(they must pass, or being caught means nothing).
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOTS = ("vfljax", "analysis")
LIMIT, WHOLE_LIMIT = 300, 3600  # seconds
CAUGHT = ("caught", "TOO LONG")
PASSED, FAILED, INTERRUPTED = 0, 1, 2  # pytest's exit codes; beyond them no test was run


class Mutant(NamedTuple):
    """One bug: ``before`` stands once in all of ``ROOTS`` and is replaced by ``after``."""

    name: str
    before: str
    after: str
    more: tuple[str, ...] = ()  # other test files: "sweep/plan" is tests/sweep/plan_test.py


PROTOCOL = (
    Mutant(
        "draws-repeat-within-an-epoch",
        'keys.fold(state.run_key, "step", state.step)\n        context',
        'keys.fold(state.run_key, "step", epoch)\n        context',
        ("defenses/core",),
    ),
    Mutant(
        "parties-share-their-dropout",
        'params), x, True, keys.fold(key, "bottom", p)',
        'params), x, True, keys.fold(key, "bottom")',
        ("models/parties",),
    ),
    Mutant(
        "accuracy-on-unread-codes",
        "scores = defense.read(defense_state, logits)",
        "scores = logits",
        ("defenses/cae",),
    ),
    Mutant("every-party-as-malicious-as-the-first", "hparams.gamma[p]", "hparams.gamma[0]"),
    Mutant(
        "every-party-deviates-as-the-first",
        "hparams.strength[p]",
        "hparams.strength[0]",
        ("federation/uploads",),
    ),
    Mutant(
        "absent-parties-learn",
        "< spec.passive, -1.0, strength",
        "< spec.passive, 0.0, strength",
        ("sweep/alone",),
    ),
    Mutant(
        "canaries-counted-where-chosen",
        "Guesses(panel, label, r, count)",
        "Guesses(panel, label, guessed, chosen)",
        ("report/canaries",),
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
        ("defenses/class_splitting",),
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
        ("defenses/label_dp",),
    ),
    Mutant(
        "milestone-an-epoch-late",
        "epoch >= hparams.milestones",
        "epoch > hparams.milestones",
        ("federation/protocol",),
    ),
    Mutant(
        "released-rule-is-the-torch2-rule",
        "trace_released(hparams.momentum, gamma)",
        "trace_released_torch2(hparams.momentum, gamma)",
        ("federation/malicious",),
    ),
    Mutant("votes-of-the-last-epoch-alone", "s.sign + jnp.sign(g)", "jnp.sign(g)", ("streaming",)),
    Mutant("rows-never-sent-are-counted", "s.count + was_sent", "s.count + 1", ("streaming",)),
    Mutant(
        "left-over-batch-weighs-as-one-row",
        "batch_metrics.loss * rest",
        "batch_metrics.loss",
        ("streaming",),
    ),
    Mutant(
        "recorded-places-not-inverted",
        "jnp.argsort(jnp.argsort(place))",
        "jnp.argsort(place)",
        ("streaming",),
    ),
    Mutant(
        "oriented-by-test-labels",
        "jnp.where(inverted, 1 - auc, auc)",
        "jnp.maximum(auc, 1 - auc)",
        ("federation/training",),
    ),
    Mutant(
        "colluders-share-their-dropout",
        "None if key is None else keys.fold(key, p)",
        "key",
        ("attacking/colluders",),
    ),
    Mutant("stale-batch-statistics", "{**variables, **moved}", "{**moved, **variables}"),
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
)

ATTACKS = (
    Mutant(
        "epoch-number-taken-as-place",
        "jnp.argmax(view.epochs == epoch)",
        "epoch",
        ("attacks/direct", "attacks/norm"),
    ),
    Mutant(
        "rows-never-sent-are-scored-by-batch",
        "jnp.where(self.sent, self.rows, rows)",
        "self.rows",
        ("attacks/unsent",),
    ),
    Mutant(
        "rows-never-sent-move-the-median",
        "jnp.nanmedian(jnp.where(sent, score, jnp.nan))",
        "jnp.nanmedian(score)",
        ("attacks/norm",),
    ),
    Mutant(
        "every-row-was-sent-in-some-epoch",
        "jnp.maximum(count, 1)[:, None], count > 0",
        "jnp.maximum(count, 1)[:, None], count >= 0",
        ("attacks/norm", "attacks/direct"),
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
        ("attacks/direct", "attacking/colluders"),
    ),
    Mutant(
        "center-ties-go-to-the-first-class",
        "num_classes - 1 - jnp.argmax(near[:, ::-1], axis=-1)",
        "jnp.argmax(near, axis=-1)",
    ),
    Mutant(
        "the-median-row-is-positive",
        "sums > jnp.nanmedian(",
        "sums >= jnp.nanmedian(",
        ("attacks/global_median",),
    ),
    Mutant(
        "k-means-keeps-its-worst-start",
        "clusters[jnp.argmin(inertia)]",
        "clusters[jnp.argmax(inertia)]",
    ),
    Mutant(
        "ramp-ends-with-the-first-draws",
        "jnp.minimum(1.0, number / steps)",
        "jnp.minimum(1.0, number / drawn)",
        ("attacks/mixmatch",),
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
        ("attacks/completion",),
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
        ("attacking/draws",),
    ),
    Mutant(
        "every-draw-scored-as-the-first",
        "order = true.known_order[draw * len(true.labels) + seed]",
        "order = true.known_order[seed]",
        ("attacking/draws",),
    ),
    Mutant(
        "who-knows-labels-is-turned-too",
        "jnp.where(output.known > 0, its_own, names)",
        "names",
        ("attacking/naming",),
    ),
    Mutant(
        "rows-that-name-classes-are-scored",
        "sent * (revealed >= output.known) * (revealed >= naming)",
        "sent * (revealed >= output.known)",
        ("attacking/naming",),
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
        ("attacking/naming",),
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
)

SUMMARY = (
    Mutant(
        "population-deviation-of-seeds",
        "squares.sum(-1) / (count - 1)",
        "squares.sum(-1) / count",
        ("report/judge",),
    ),
    Mutant(
        "error-of-a-mean-by-the-count",
        "* spread / np.sqrt(count)\n",
        "* spread / count\n",
        ("report/judge",),
    ),
    Mutant(
        "no-utility-may-be-lost",
        "facts.goal.max_cost < 1 else MEAN_LOSS",
        "facts.goal.max_cost < 1 else 0.0",
        ("report/judge",),
    ),
    Mutant(
        "a-leak-is-said-of-a-mean",
        "leaks = lower > EXCESS",
        "leaks = compared.excess.mean > EXCESS",
        ("report/judge",),
    ),
    Mutant(
        "an-excess-below-the-baseline",
        "np.where(any_figure, np.maximum(excess, 0), np.nan)",
        "np.where(any_figure, excess, np.nan)",
        ("report/judge",),
    ),
    Mutant(
        "undefended-keeps-attacks-that-were-not-run",
        "np.where(had, leaks[..., :1, :, :], np.nan)",
        "np.where(True, leaks[..., :1, :, :], np.nan)",
        ("report/judge",),
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
        '["incomplete", "leak", "validation_loss"], kind="stable"',
        '["incomplete", "validation_loss", "leak"], kind="stable"',
    ),
    Mutant(
        "recommended-by-its-loss-before-its-leak",
        'candidates.sort_values(["leak", "validation_loss"]',
        'candidates.sort_values(["validation_loss", "leak"]',
    ),
    Mutant(
        "units-in-no-order-of-stages",
        "return sorted(units, key=lambda unit: unit.stage)",
        "return units",
    ),
    Mutant(
        "a-spent-budget-begins-units",
        "return time.monotonic() < end",
        "return True",
        ("auditing/audit",),
    ),
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
)

DATASETS = (
    Mutant("one-balanced-row-too-many", "(c < most % len(classes))", "(c <= most % len(classes))"),
    Mutant(
        "four-channels-are-not-last",
        "features.shape[3] > 4",
        "features.shape[3] >= 4",
        ("datasets/npz",),
    ),
)

STORAGE = (
    Mutant(
        "checksums-are-never-compared",
        "if digest(path) != expected:",
        "if not digest(path):",
        ("store/loading",),
    ),
    Mutant(
        "results-in-the-order-of-shards",
        'results.sort_by("trial") if results.num_rows else results',
        "results",
        ("sweep/train",),
    ),
    Mutant(
        "exchange-of-the-first-lane", "name: array[self.member]", "name: array[0]", ("sweep/train",)
    ),
    Mutant("weights-of-the-first-lane", ".result()[member]", ".result()[0]", ("store/loading",)),
    Mutant("half-the-width-is-never-tried", "max(width // 2 - 1, 0)", "max(width // 2, 0)"),
    Mutant(
        "one-order-more-than-fits-is-kept",
        "len(self._kept) < self._most",
        "len(self._kept) <= self._most",
        ("sweep/train",),
    ),
    Mutant(
        "divergence-dated-to-its-last-epoch", "int(broken[0])", "int(broken[-1])", ("sweep/train",)
    ),
    Mutant(
        "the-width-of-the-older-save",
        "return sorted(map(int, saves), reverse=True)",
        "return sorted(map(int, saves))",
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
        ("store/manifest",),
    ),
    Mutant(
        "no-copy-of-a-record-is-read",
        "for path in (main, copy):",
        "for path in (main,):",
        ("store/header",),
    ),
    Mutant(
        "a-full-disk-is-known-by-its-number-alone",
        "any(text in str(error) for text in FULL_TEXTS)",
        'error.args == ("full",)',
    ),
    Mutant(
        "leftovers-of-dead-writers-stay",
        "for name in [*folders, *files]:\n            match",
        "for name in files:\n            match",
        ("store/claims",),
    ),
    Mutant(
        "what-others-write-now-is-removed",
        "if match is not None and not _lives(int(match[1])):",
        "if match is not None:",
        ("store/claims",),
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
        ("store/units",),
    ),
    Mutant(
        "a-unit-goes-over-one-that-came-meanwhile",
        "error.errno not in (errno.ENOTEMPTY, errno.EEXIST)",
        "error.errno not in (errno.EEXIST,)",
        ("store/units",),
    ),
    Mutant(
        "saved-rows-are-attacked-again",
        "todo = [job for job in left if job.key not in rows]",
        "todo = left",
        ("attacking/run",),
    ),
    Mutant(
        "an-earlier-rule-s-rows-are-damage",
        "units = [unit.name for unit in units_of(header, outdated=True)]",
        "units = [unit.name for unit in units_of(header)]",
        ("attacking/rules",),
    ),
    Mutant(
        "what-is-set-aside-is-overwritten",
        'while (folder / f"{name}.{number}").exists():',
        "while number < 0:",
    ),
)

LAUNCHING = (
    Mutant("a-death-is-no-failure", '"why": DIED', '"why": ""', ("store/claims",)),
    Mutant(
        "an-interrupt-is-a-failure",
        "    except BaseException:\n        path.unlink(missing_ok=True)\n        raise",
        "    except BaseException:\n        raise",
        ("store/claims",),
    ),
    Mutant(
        "a-dear-attack-does-not-wait", "and waited.isdisjoint(unit.after)", "", ("launching/work",)
    ),
    Mutant(
        "what-needs-a-lost-unit-is-waited-for",
        "(missing and missing > most) or not may(unit)",
        "not may(unit)",
        ("launching/work",),
    ),
    Mutant(
        "a-dead-worker-has-no-successor",
        "missing = len(failures) if handles else engine.jobs",
        "missing = 0 if turn else engine.jobs",
        ("launching/pulling",),
    ),
    Mutant(
        "plugins-stay-at-home",
        "for source in worker.plugins:",
        "for source in ():",
        ("launching/pulling",),
    ),
    Mutant(
        "an-elsewhere-planned-width-is-chosen-anew",
        'devices = header["devices"] if same else jax.device_count()',
        "devices = jax.device_count()",
        ("sweep/train",),
    ),
    Mutant(
        "rounded-products-follow-the-default-precision",
        'result = {"precision": None, "preferred',
        'result = {"preferred',
        ("machine",),
    ),
)

MUTANTS: tuple[Mutant, ...] = (
    *(*PROTOCOL, *DEFENSES, *ATTACKS, *SCORING, *SUMMARY, *DATASETS, *STORAGE, *DAMAGE, *LAUNCHING),
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


def places(snippet: str, root: pathlib.Path) -> list[pathlib.Path]:
    """The files of ``ROOTS`` that hold ``snippet``, each as often as it does."""
    files = sorted(path for name in ROOTS for path in (root / name).rglob("*.py"))
    return [path for path in files for _ in range(path.read_text().count(snippet))]


def tests_of(mutant: Mutant, root: pathlib.Path) -> list[str]:
    """The test files of the module that a mutant belongs to, where it has one, and ``more``."""
    holders = [path.relative_to(root).with_suffix("") for path in places(mutant.before, root)]
    own = [str(path.relative_to(path.parts[0])) for path in holders]
    names = (f"tests/{name}_test.py" for name in dict.fromkeys((*own, *mutant.more)))
    return [name for name in names if (root / name).is_file()]


class Outcome(NamedTuple):
    """Of one run of pytest, or of one mutant."""

    verdict: str
    by: str = ""  # the first test that failed


def pytest_on(root: pathlib.Path, arguments: Sequence[str], limit: float) -> Outcome:
    """Pytest on the copy in ``root``. Without a single test nothing is caught."""
    cache = pathlib.Path(tempfile.gettempdir()) / "vfljax_mutants_compiled"
    environment = {
        # programs that a mutant does not touch are not compiled again
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        **os.environ,
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",  # bytecode is told by whole seconds: it might be stale
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return Outcome("TOO LONG", f"no end after {limit:g} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode == PASSED:
        return Outcome("SURVIVED")
    if process.returncode not in (FAILED, INTERRUPTED):
        return Outcome("NO TESTS")
    broken = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return Outcome("caught", broken[0].split(" - ")[0].partition(" ")[2] if broken else "")


def try_mutant(mutant: Mutant, root: pathlib.Path, whole: bool, limit: float) -> Outcome:
    """One mutant in the copy in ``root``, which is restored."""
    holders = places(mutant.before, root)
    if len(holders) != 1:
        return Outcome("AMBIGUOUS" if holders else "NOT FOUND")
    (path,), tests = holders, tests_of(mutant, root)
    text = path.read_text()
    path.write_text(text.replace(mutant.before, mutant.after))
    try:
        outcome = pytest_on(root, ["-n", "0", *tests], limit)
        if outcome.verdict == "SURVIVED" and whole:
            outcome = pytest_on(root, ["-n", "2"], WHOLE_LIMIT)
        return outcome
    finally:
        path.write_text(text)


def run(mutants: Iterable[Mutant], whole: bool, limit: float) -> dict[str, Outcome]:
    """Every mutant's outcome by name, printed as they come."""
    outcomes, began = {}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vfljax_mutants_") as folder:
        root = pathlib.Path(folder) / "checkout"
        copy_checkout(root)
        for mutant in mutants:
            start = time.monotonic()
            outcome = outcomes[mutant.name] = try_mutant(mutant, root, whole, limit)
            seconds = time.monotonic() - start
            line = f"{outcome.verdict:9} {seconds:6.1f} s  {mutant.name}  {outcome.by}"
            print(line.rstrip(), flush=True)
    kinds = [outcome.verdict for outcome in outcomes.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{len(kinds)} mutants: {counts}; {time.monotonic() - began:.0f} s")
    return outcomes


def run_clean(mutants: Iterable[Mutant]) -> bool:
    """Whether the mutants' test files pass without any mutant."""
    good = True
    with tempfile.TemporaryDirectory(prefix="vfljax_mutants_") as folder:
        root = pathlib.Path(folder) / "checkout"
        copy_checkout(root)
        for name in dict.fromkeys(itertools.chain(*(tests_of(m, root) for m in mutants))):
            start = time.monotonic()
            passed = pytest_on(root, ["-n", "0", name], WHOLE_LIMIT).verdict == "SURVIVED"
            good &= passed
            verdict = "passed" if passed else "FAILED"
            print(f"{verdict:9} {time.monotonic() - start:6.1f} s  {name}", flush=True)
    return good


def main() -> int:
    """0 if every mutant was caught (with ``--clean``: if every test passed)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants, by name")
    parser.add_argument("--whole", action="store_true", help="survivors against the whole suite")
    parser.add_argument("--clean", action="store_true", help="the same tests without a mutant")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of one mutant's tests")
    options = parser.parse_args()
    names = [mutant.name for mutant in MUTANTS]
    unknown = sorted(set(options.only or ()) - set(names))
    if unknown:
        parser.error(f"no mutant is called {', '.join(unknown)}")
    mutants = [m for m in MUTANTS if options.only is None or m.name in options.only]
    if options.clean:
        return 0 if run_clean(mutants) else 1
    outcomes = run(mutants, options.whole, options.limit)
    return 0 if all(outcome.verdict in CAUGHT for outcome in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
