"""Realistic bugs, and whether the tests catch them: ``python tests/mutants.py [--only NAME ...]``.

A mutant names no file: it belongs to the one file of ``vfljax`` that holds its ``before`` exactly
once, so that the list survives moves of code between files. ``before`` avoids local names. Mutants
are applied in a temporary copy of the checkout, one at a time, each against the test files that
mirror what it breaks. A run that takes longer than five minutes counts as caught, but is told apart:
on a busy machine that may be no more than the machine (``--limit``). ``--whole`` runs
survivors against the whole suite too, ``--clean`` the named mutants' tests without any mutant
(they must pass, or being caught means nothing).
"""

from __future__ import annotations

import argparse
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
LIMIT, WHOLE_LIMIT = 300, 3600  # seconds
CAUGHT = ("caught", "TOO LONG")
PASSED, FAILED, INTERRUPTED = 0, 1, 2  # pytest's exit codes; beyond them no test was run


class Mutant(NamedTuple):
    """One bug: ``before`` stands once in all of ``vfljax`` and is replaced by ``after``."""

    name: str
    before: str
    after: str
    tests: tuple[str, ...]  # the files that mirror the module, relative to the root


PROTOCOL = (
    Mutant(
        "draws-repeat-within-an-epoch",
        'keys.fold(state.run_key, "step", state.step)\n        context',
        'keys.fold(state.run_key, "step", epoch)\n        context',
        ("tests/federation/protocol_test.py", "tests/defenses/core_test.py"),
    ),
    Mutant(
        "parties-share-their-dropout",
        'params), x, True, keys.fold(key, "bottom", p)',
        'params), x, True, keys.fold(key, "bottom")',
        ("tests/federation/protocol_test.py", "tests/models/parties_test.py"),
    ),
    Mutant(
        "accuracy-on-unread-codes",
        "scores = defense.read(defense_state, logits)",
        "scores = logits",
        ("tests/defenses/cae_test.py", "tests/federation/protocol_test.py"),
    ),
    Mutant(
        "every-party-as-malicious-as-the-first",
        "hparams.gamma[p]",
        "hparams.gamma[0]",
        ("tests/federation/protocol_test.py",),
    ),
    Mutant(
        "weighted-loss-over-rows-not-weights",
        "/ jnp.sum(weighted)",
        "/ len(weighted)",
        ("tests/federation/protocol_test.py",),
    ),
    Mutant(
        "exchange-holds-undefended-gradients",
        "received[: spec.passive]",
        "cut_gradients[: spec.passive]",
        ("tests/federation/protocol_test.py",),
    ),
    Mutant(
        "epoch-begins-a-step-early",
        "state.step // spec.steps_per_epoch",
        "(state.step + 1) // spec.steps_per_epoch",
        ("tests/federation/protocol_test.py",),
    ),
    Mutant(
        "training-accuracy-on-randomized-labels",
        "jnp.argmax(scores, -1) == batch.labels",
        "jnp.argmax(scores, -1) == context.labels",
        ("tests/federation/protocol_test.py", "tests/defenses/label_dp_test.py"),
    ),
    Mutant(
        "milestone-an-epoch-late",
        "epoch >= hparams.milestones",
        "epoch > hparams.milestones",
        ("tests/federation/optimizers_test.py", "tests/federation/protocol_test.py"),
    ),
    Mutant(
        "released-rule-is-the-torch2-rule",
        "trace_released(hparams.momentum, gamma)",
        "trace_released_torch2(hparams.momentum, gamma)",
        ("tests/federation/optimizers_test.py", "tests/federation/malicious_test.py"),
    ),
    Mutant(
        "votes-of-the-last-epoch-alone",
        "s.sign + jnp.sign(g)",
        "jnp.sign(g)",
        ("tests/federation/training_test.py", "tests/streaming_test.py"),
    ),
    Mutant(
        "rows-never-sent-are-counted",
        "s.count + was_sent",
        "s.count + 1",
        ("tests/federation/training_test.py", "tests/streaming_test.py"),
    ),
    Mutant(
        "left-over-batch-weighs-as-one-row",
        "batch_metrics.loss * rest",
        "batch_metrics.loss",
        ("tests/federation/training_test.py", "tests/streaming_test.py"),
    ),
    Mutant(
        "recorded-places-not-inverted",
        "jnp.argsort(jnp.argsort(place))",
        "jnp.argsort(place)",
        ("tests/federation/training_test.py", "tests/streaming_test.py"),
    ),
    Mutant(
        "oriented-by-test-labels",
        "jnp.where(inverted, 1 - auc, auc)",
        "jnp.maximum(auc, 1 - auc)",
        ("tests/federation/training_test.py", "tests/report/configurations_test.py"),
    ),
    Mutant(
        "colluders-share-their-dropout",
        "None if key is None else keys.fold(key, p)",
        "key",
        ("tests/models/parties_test.py", "tests/attacking/colluders_test.py"),
    ),
    Mutant(
        "stale-batch-statistics",
        "{**variables, **moved}",
        "{**moved, **variables}",
        ("tests/models/parties_test.py",),
    ),
)

DEFENSES = (
    Mutant(
        "parties-share-their-noise",
        "rule(keys.fold(context.key, i), g, context)",
        "rule(context.key, g, context)",
        ("tests/defenses/core_test.py",),
    ),
    Mutant(
        "later-targets-see-true-labels",
        "context = changed._replace(",
        "context = context._replace(",
        ("tests/defenses/core_test.py",),
    ),
    Mutant(
        "later-members-start-from-true-labels",
        "labels=member.labels(states[name], data.labels)",
        "labels=data.labels",
        ("tests/defenses/core_test.py",),
    ),
    Mutant(
        "randomized-response-over-one-class-more",
        "(jnp.asarray(count) - 1) * jnp.exp(-epsilon)",
        "jnp.asarray(count) * jnp.exp(-epsilon)",
        ("tests/defenses/label_dp_test.py",),
    ),
    Mutant(
        "a-flipped-label-may-be-itself",
        "place + (place >= position)",
        "place + (place > position)",
        ("tests/defenses/label_dp_test.py",),
    ),
    Mutant(
        "one-class-more-counts-as-top",
        "jnp.where(rank < k, within, outside)",
        "jnp.where(rank <= k, within, outside)",
        ("tests/defenses/label_dp_test.py",),
    ),
    Mutant(
        "teacher-is-handed-the-other-half",
        "jnp.where(first, drawn, 0)",
        "jnp.where(first, drawn, labels)",
        ("tests/defenses/label_dp_test.py",),
    ),
    Mutant(
        "noise-across-of-the-other-class",
        "jnp.where(positive, l21, l20)",
        "jnp.where(positive, l20, l21)",
        ("tests/defenses/marvell_test.py",),
    ),
    Mutant(
        "noisy-labels-share-the-critics-draw",
        'keys.fold(key, "response")',
        'keys.fold(key, "real")',
        ("tests/defenses/gafm_test.py",),
    ),
    Mutant(
        "delta-chosen-by-unoriented-auc",
        "np.maximum(auc, 1 - auc)[:, None]",
        "auc[:, None]",
        ("tests/defenses/gafm_test.py",),
    ),
    Mutant(
        "dcor-gradient-a-batch-too-large",
        "2 * slope / (z.shape[0] ** 2)",
        "2 * slope / z.shape[0]",
        ("tests/defenses/dcor_test.py",),
    ),
    Mutant(
        "a-class-is-ahead-of-itself",
        "jnp.tri(scores.shape[-1], k=-1, dtype=bool)",
        "jnp.tri(scores.shape[-1], k=0, dtype=bool)",
        ("tests/defenses/kdk_test.py",),
    ),
    Mutant(
        "one-entry-fewer-is-kept",
        "jnp.sum(bits >= candidate) >= count",
        "jnp.sum(bits >= candidate) > count",
        ("tests/defenses/compression_test.py",),
    ),
    Mutant(
        "levels-from-the-first-step-alone",
        "first = context.epoch == 0",
        "first = context.step == 0",
        ("tests/defenses/discrete_sgd_test.py",),
    ),
    Mutant(
        "isotropic-noise-by-rows-not-columns",
        "longest / jnp.sqrt(g.shape[-1])",
        "longest / jnp.sqrt(g.shape[0])",
        ("tests/defenses/noise_test.py",),
    ),
    Mutant(
        "max-norm-drops-a-root",
        "jnp.sqrt(ratio + 1)",
        "jnp.sqrt(ratio)",
        ("tests/defenses/max_norm_test.py",),
    ),
    Mutant(
        "one-entry-beyond-the-quota",
        "& (left > 0)",
        "& (left >= 0)",
        ("tests/defenses/ppdl_test.py",),
    ),
)

ATTACKS = (
    Mutant(
        "epoch-number-taken-as-place",
        "jnp.argmax(view.epochs == epoch)",
        "epoch",
        ("tests/attacks/direct_test.py", "tests/attacks/norm_test.py"),
    ),
    Mutant(
        "rows-never-sent-are-scored-by-batch",
        "jnp.where(self.sent, self.rows, rows)",
        "self.rows",
        ("tests/attacks/residual_test.py", "tests/attacks/global_median_test.py"),
    ),
    Mutant(
        "rows-never-sent-move-the-median",
        "jnp.nanmedian(jnp.where(sent, score, jnp.nan))",
        "jnp.nanmedian(score)",
        ("tests/attacks/norm_test.py", "tests/attacks/hints_test.py"),
    ),
    Mutant(
        "every-row-was-sent-in-some-epoch",
        "jnp.maximum(count, 1)[:, None], count > 0",
        "jnp.maximum(count, 1)[:, None], count >= 0",
        ("tests/attacks/norm_test.py", "tests/attacks/direct_test.py"),
    ),
    Mutant(
        "malicious-steps-may-shrink",
        "jnp.clip(1 + gamma * ratio, 1.0, 5.0)",
        "jnp.clip(1 + gamma * ratio, 0.0, 5.0)",
        ("tests/federation/malicious_test.py",),
    ),
    Mutant(
        "colluders-entries-interleaved",
        "x.reshape(len(x), -1, num_classes)",
        "x.reshape(len(x), num_classes, -1).swapaxes(1, 2)",
        ("tests/attacks/direct_test.py", "tests/attacking/colluders_test.py"),
    ),
    Mutant(
        "center-ties-go-to-the-first-class",
        "num_classes - 1 - jnp.argmax(near[:, ::-1], axis=-1)",
        "jnp.argmax(near, axis=-1)",
        ("tests/attacks/centers_test.py",),
    ),
    Mutant(
        "the-median-row-is-positive",
        "sums > jnp.nanmedian(",
        "sums >= jnp.nanmedian(",
        ("tests/attacks/global_median_test.py",),
    ),
    Mutant(
        "k-means-keeps-its-worst-start",
        "clusters[jnp.argmin(inertia)]",
        "clusters[jnp.argmax(inertia)]",
        ("tests/attacks/spectral_test.py",),
    ),
    Mutant(
        "ramp-ends-with-the-first-draws",
        "jnp.minimum(1.0, number / steps)",
        "jnp.minimum(1.0, number / drawn)",
        ("tests/attacks/completion_test.py", "tests/attacks/mixmatch_test.py"),
    ),
    Mutant(
        "known-rows-among-the-unlabeled",
        "jnp.where(known.count >= rows, 0, known.count)",
        "jnp.int32(0)",
        ("tests/attacks/completion_test.py",),
    ),
    Mutant(
        "squared-error-summed-over-classes",
        "jnp.mean(error**2)",
        "jnp.mean(jnp.sum(error**2, axis=-1))",
        ("tests/attacks/mixmatch_test.py", "tests/attacks/completion_test.py"),
    ),
    Mutant(
        "spread-over-rows-never-sent",
        "jnp.sum(x * x, axis=0, keepdims=True) / count",
        "jnp.sum(x * x, axis=0, keepdims=True) / len(x)",
        ("tests/attacks/probe_test.py",),
    ),
    Mutant(
        "missing-hints-are-any-known-row",
        "jnp.where(places >= 0, places, places[0])",
        "jnp.where(places >= 0, places, 0)",
        ("tests/attacks/hints_test.py",),
    ),
    Mutant(
        "rows-never-sent-are-neighbors",
        "itself | ~sent[None, :]",
        "itself",
        ("tests/attacks/residual_test.py",),
    ),
)

SCORING = (
    Mutant(
        "one-known-label-too-few",
        "sent * (_turns(true, i) >= output.known)",
        "sent * (_turns(true, i) > output.known)",
        ("tests/attacking/scoring_test.py",),
    ),
    Mutant(
        "direction-read-off-the-reported-half",
        "metrics.leak_turned(scores.train, labels, choose, report)",
        "metrics.leak_turned(scores.train, labels, report, report)",
        ("tests/attacking/scoring_test.py",),
    ),
    Mutant(
        "null-band-at-the-wrong-quantile",
        "NULL_LEVEL = 0.95",
        "NULL_LEVEL = 0.9",
        ("tests/attacking/scoring_test.py",),
    ),
    Mutant(
        "null-band-of-all-unlabeled-rows",
        "true.null[i], report, flip=False",
        "true.null[i], unlabeled, flip=False",
        ("tests/attacking/scoring_test.py",),
    ),
    Mutant(
        "a-guess-at-an-unsent-row-is-a-guess",
        "jnp.all(jnp.isfinite(scores.train), axis=-1) & output.sent",
        "jnp.all(jnp.isfinite(scores.train), axis=-1)",
        ("tests/attacking/scoring_test.py",),
    ),
    Mutant(
        "seeds-share-their-permutations",
        "np.random.default_rng([seed, 104729])",
        "np.random.default_rng(104729)",
        ("tests/attacking/scoring_test.py",),
    ),
    Mutant(
        "ties-are-losses-in-the-auc",
        "(below[left] + below[right]) / 2",
        "below[left]",
        ("tests/metrics_test.py",),
    ),
    Mutant(
        "a-broken-batch-has-an-auc",
        "(positives * negatives > 0) & (broken == 0)",
        "positives * negatives > 0",
        ("tests/metrics_test.py",),
    ),
    Mutant(
        "recall-over-absent-classes-too",
        "jnp.sum(recall * present) / jnp.maximum(present.sum(), 1.0)",
        "jnp.sum(recall * present) / classes",
        ("tests/metrics_test.py",),
    ),
    Mutant(
        "permuted-labels-count-rows-left-out",
        "count = weights.sum()",
        "count = jnp.float32(len(weights))",
        ("tests/metrics_test.py",),
    ),
)

SUMMARY = (
    Mutant(
        "population-deviation-of-seeds",
        "sample.std(ddof=1)",
        "sample.std()",
        ("tests/report/configurations_test.py",),
    ),
    Mutant(
        "no-accuracy-may-be-lost",
        "MEAN_LOSS = 0.02",
        "MEAN_LOSS = 0.0",
        ("tests/report/assessment_test.py", "tests/report/judging_test.py"),
    ),
    Mutant(
        "more-is-said-of-a-mean",
        "if lower > 0:",
        "if more.mean > 0:",
        ("tests/report/findings_test.py", "tests/report/assessment_test.py"),
    ),
)

STORAGE = (
    Mutant(
        "checksums-are-never-compared",
        "if digest(path) != expected:",
        "if not digest(path):",
        ("tests/store/directory_test.py", "tests/store/loading_test.py"),
    ),
    Mutant(
        "results-in-the-order-of-shards",
        'table.sort_by("trial") if table.num_rows else table',
        "table",
        ("tests/store/loading_test.py", "tests/sweep/train_test.py"),
    ),
    Mutant(
        "exchange-of-the-first-lane",
        "name: array[self.member]",
        "name: array[0]",
        ("tests/store/loading_test.py", "tests/sweep/train_test.py"),
    ),
    Mutant(
        "weights-of-the-first-lane",
        ".result()[member]",
        ".result()[0]",
        ("tests/store/directory_test.py", "tests/store/loading_test.py"),
    ),
    Mutant(
        "half-the-width-is-never-tried",
        "max(width // 2 - 1, 0)",
        "max(width // 2, 0)",
        ("tests/sweep/batch_layout_test.py",),
    ),
    Mutant(
        "one-order-more-than-fits-is-kept",
        "len(self._kept) < self._most",
        "len(self._kept) <= self._most",
        ("tests/sweep/train_test.py",),
    ),
    Mutant(
        "divergence-dated-to-its-last-epoch",
        "int(broken[0])",
        "int(broken[-1])",
        ("tests/sweep/train_test.py",),
    ),
)

DAMAGE = (
    Mutant(
        "a-renamed-folder-is-believed",
        '(record["of"], record["sweep"]) != (unit, sweep)',
        'record["sweep"] != sweep',
        ("tests/store/manifest_test.py",),
    ),
    Mutant(
        "a-record-s-own-sum-is-not-compared",
        "SEAL in record and seal(record)[SEAL] != record[SEAL]",
        "SEAL not in seal(record)",
        ("tests/store/manifest_test.py",),
    ),
    Mutant(
        "damage-is-sealed-anew",
        '{**record, "files": {**files, **record["files"]}}',
        "{**manifest(path, unit, sweep, files_below(path))}",
        ("tests/store/manifest_test.py",),
    ),
    Mutant(
        "no-copy-of-a-record-is-read",
        "for path in (main, copy):",
        "for path in (main,):",
        ("tests/store/header_test.py",),
    ),
    Mutant(
        "a-full-disk-is-known-by-its-number-alone",
        'any(word in str(error) for word in ("No space left on device", "Disk quota exceeded"))',
        'error.args == ("full",)',
        ("tests/store/atomic_test.py",),
    ),
    Mutant(
        "leftovers-of-dead-writers-stay",
        'for place in ("shards", "partial", "partial/*", "attacks", "attacks/*"):',
        'for place in ("shards", "partial", "attacks"):',
        ("tests/store/lock_test.py",),
    ),
    Mutant(
        "what-others-write-now-is-removed",
        "if match is None or not _lives(int(match[1])):",
        "if match is not None:",
        ("tests/store/lock_test.py",),
    ),
    Mutant(
        "the-old-save-goes-first",
        "if not (workdir / unit).exists():  # the same epochs",
        "remove(partial_path(workdir, name))\n    if not (workdir / unit).exists():  # the same epochs",
        ("tests/store/directory_test.py",),
    ),
    Mutant(
        "blocks-are-named-by-their-place",
        'f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.parquet"',
        'f"{name}-{len(keys)}.parquet"',
        ("tests/store/attacks_test.py", "tests/attacking/run_test.py"),
    ),
    Mutant(
        "an-attack-may-end-with-rows-missing",
        "    if missing:\n        unit = store.unit_of(",
        "    if missing > len(rows) + 999:\n        unit = store.unit_of(",
        ("tests/attacking/run_test.py",),
    ),
    Mutant(
        "oracles-are-known-at-the-end-alone",
        "summary[variant.key] = {**NO_COST, **before, **about}",
        'summary[variant.key] = {**NO_COST, **before, **about, "oracle": False}',
        ("tests/attacking/run_test.py",),
    ),
    Mutant(
        "what-is-set-aside-is-overwritten",
        'while (folder / f"{name}.{number}").exists():',
        "while number < 0:",
        ("tests/store/check_test.py",),
    ),
    Mutant(
        "both-copies-of-attacks-stay-lost",
        'if unit == "attacks.json":',
        'if unit == "attacks.copy":',
        ("tests/store/check_test.py",),
    ),
)

LAUNCHING = (
    Mutant(
        "what-a-dead-job-had-not-begun-is-lost",
        "again += [name for name in left if name not in blamed]",
        "again += []",
        ("tests/launching/scheduler_test.py",),
    ),
    Mutant(
        "a-late-job-works-for-another-leader",
        "yield writer(workdir) == leader",
        "yield True",
        ("tests/store/lock_test.py", "tests/launching/scheduler_test.py"),
    ),
    Mutant(
        "plugins-stay-at-home",
        "return _planned(job.workdir, job.sweep, text, job.plugins)",
        "return _planned(job.workdir, job.sweep, text, ())",
        ("tests/launching/scheduler_test.py",),
    ),
    Mutant(
        "an-elsewhere-planned-width-is-chosen-anew",
        'return header["devices"] if same else jax.device_count()',
        "return jax.device_count()",
        ("tests/sweep/plan_test.py", "tests/sweep/train_test.py"),
    ),
    Mutant(
        "rounded-products-follow-the-default-precision",
        'result = {"precision": None, "preferred',
        'result = {"preferred',
        ("tests/machine_test.py", "tests/models/precision_test.py"),
    ),
)

MUTANTS: tuple[Mutant, ...] = (
    *(*PROTOCOL, *DEFENSES, *ATTACKS, *SCORING, *SUMMARY, *STORAGE, *DAMAGE, *LAUNCHING),
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
    """The files of ``vfljax`` that hold ``snippet``, each as often as it does."""
    files = sorted((root / "vfljax").rglob("*.py"))
    return [path for path in files for _ in range(path.read_text().count(snippet))]


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
    (path,) = holders
    text = path.read_text()
    path.write_text(text.replace(mutant.before, mutant.after))
    try:
        outcome = pytest_on(root, ["-n", "0", *mutant.tests], limit)
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
    files, good = dict.fromkeys(name for mutant in mutants for name in mutant.tests), True
    with tempfile.TemporaryDirectory(prefix="vfljax_mutants_") as folder:
        root = pathlib.Path(folder) / "checkout"
        copy_checkout(root)
        for name in files:
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
