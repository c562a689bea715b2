"""LeakBench: entries trained on a data set, attacked by AutoLeak, and judged on every board.

    WORKDIR/tuning/            undefended and every strength of every entry, on all seeds, without attacks
    WORKDIR/split/             undefended and the strengths chosen with a top model, under AutoLeak
    WORKDIR/no_split/          likewise without a top model
    WORKDIR/split/canaries/    entries that claim an epsilon, on one seed with label canaries; no_split likewise

A strength is chosen by its cost on validation rows alone: it is the strongest that keeps a share (``GAINS``)
of the federation's gain over the label party alone. No leak is read before all strengths are chosen.
"""

from __future__ import annotations

import datetime
import math
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from analysis.leakbench.boards import BOARDS, GAINS, KNOWN, UNDEFENDED, Board, autoleak
from analysis.leakbench.entry_files import SCORED, Break, Data, Entry, Reading, Result, Score
from vfljax import contract, defenses, store
from vfljax.attacking.run import attack_sweep
from vfljax.attacks import TABLE
from vfljax.auditing import suite
from vfljax.auditing.stages import CANARIES
from vfljax.errors import UserError
from vfljax.report import choosing, lower_limits, stored_rows, worth
from vfljax.report.assessed import Assessment
from vfljax.report.assessment import assess
from vfljax.report.candidates import EXCESS
from vfljax.report.configurations import configurations, reference_of, undefended
from vfljax.report.estimates import Estimate
from vfljax.report.stored_rows import StoredRows
from vfljax.sweep.experiment import experiment_of, parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.records import Goal
from vfljax.sweep.train import train_sweep
from vfljax.types import MALICIOUS

TUNING = "tuning"
TRAINED = {"split": ("split", MALICIOUS), "no_split": ("no_split",)}
"""The kinds of federation that are trained for the boards of each federation."""
NOT_KEPT, NO_TOP = "no strength keeps so much", "not trained without a top model"
DIVERGED, FAILED = "diverged on every seed", "no attack gave a figure above chance"
NOISE = 0.01  # smaller differences of leak, from a reading or an untrained bottom, do not count
Places = Mapping[tuple[str, float], int | None]
"""(federation in which the method was trained, share of the gain) -> index of the chosen strength among those
that were tried; None if no strength keeps that share."""


class Bench(NamedTuple):
    """A data set of LeakBench, the folder of its sweeps, and how the sweeps are made."""

    data: Data
    config: Mapping[str, Any]  # the data set's, without any entry
    workdir: pathlib.Path
    command: str
    say: Callable[[str], None] = print

    def sweep(
        self, folder: str, fields: Mapping[str, Any], attacks: Sequence[str] | None = None
    ) -> StoredRows:
        """Trains and attacks those parts of a sweep that are not stored yet, and returns its rows.

        Args:
          folder: of the sweep, below ``workdir``.
          fields: of the config that differ from the data set's.
          attacks: names; None for those of the config.
        """
        config, path = {**self.config, **fields}, self.workdir / folder
        plan = train_sweep(parse(config), path, self.command, self.say)
        if config["attacks"]:
            attack_sweep(plan, path, attacks, self.say)
        store.export(path)
        return stored_rows.read(store.load(path), named=False)

    def run(self, entries: Sequence[Entry]) -> list[Entry]:
        """Trains, attacks and judges entries on all boards of the data set. Stored parts are not made again.

        Returns:
          The entries with their results on this data set. Boards of a refused entry have the reason.

        Raises:
          UserError: if attacks have other rules than those of the suite, and whatever a sweep raises.
          ContractError: if a plugin's defense breaks the contract.
        """
        autoleak().require_current()
        chains = {entry.name: entry.chain(self.data) for entry in entries}
        # entries that no data set could serve are refused before anything is trained
        fields = {"grid": {UNDEFENDED: {}, **chains}, "attacks": {}, "federations": tuple(TRAINED)}
        contract.check_plugins(parse({**self.config, **fields}).defense_values, {})
        plan = make_plan(parse(dict(self.config)))
        refused = {name: suite.refusal(self.config, plan, chain) for name, chain in chains.items()}
        served = [entry for entry in entries if not refused[entry.name]]
        fields["grid"] = {UNDEFENDED: {}} | {entry.name: chains[entry.name] for entry in served}
        tuning = self.sweep(TUNING, fields)
        places = {entry.name: _chosen(tuning, entry.name) for entry in served}
        rows = {}
        for federation, kinds in TRAINED.items():
            grid: dict[str, Any] = {UNDEFENDED: {}} | {
                entry.name: entry.chain(self.data, kept)
                for entry in served
                if (kept := _kept(places[entry.name], federation))
            }
            attacks = suite.suited(autoleak().attacks, kinds, KNOWN, plan.dataset.num_classes)
            fields = {"grid": grid, "attacks": attacks, "federations": kinds}
            rows[federation] = self.sweep(federation, fields)
            claiming = {name: grid[name] for name in grid if _claims(grid[name])}
            if claiming:
                train = rows[federation].sweep.header["data"]["train"]
                planted = {"grid": claiming, "canaries": min(CANARIES, train // 5)}
                planted |= {"seeds": 1, "known_draws": 1}
                self.sweep(f"{federation}/{lower_limits.FOLDER}", fields | planted)
        header, hashes, out = rows["split"].sweep.header, tuning.sweep.plugins, []
        for entry in entries:
            if refused[entry.name]:
                scores = [Score(b, gain, refused[entry.name]) for b in BOARDS for gain in GAINS]
            else:
                scores = [*_scores(rows, entry.name, places[entry.name], autoleak().attacks)]
            result = Result(
                autoleak=autoleak().version,
                revision=header["revision"],
                date=f"{datetime.date.today()}",
                versions=header["versions"],
                plugins={n: hashes[n]["sha256"] for n in entry.method if n in hashes},
                scores=tuple(scores),
            )
            results = {**entry.results, self.data: result}
            out.append(msgspec.structs.replace(entry, results=results))
        return out

    def attack(self, entry: Entry, attacks: Sequence[str], by: str, how: str) -> Entry:
        """Runs further attacks on the sweeps of ``run``, and records where they read more than known attacks.

        Args:
          entry: with its results on the data set.
          attacks: names of attacks, of plugins or of the table.
          by: who breaks the entry.
          how: what the attacks do.

        Returns:
          The entry with a ``Break`` for each board and share of the gain where they read more.
        """
        rows = {
            name: self.sweep(name, store.load(self.workdir / name).config, attacks)
            for name in TRAINED
        }
        if not any(score.reading for score in entry.results[self.data].scores):
            raise UserError(f"{entry.name} has no score on {self.data} that could be broken.")
        tuning = stored_rows.read(store.load(self.workdir / TUNING), named=False)
        places, found = _chosen(tuning, entry.name), []
        for score in _scores(rows, entry.name, places, {*autoleak().attacks, *attacks}):
            known, reading = entry.best_known(self.data, *score.place), score.reading
            if known is None or reading is None or reading.attack not in attacks:
                continue
            if reading.leak > known[0].leak + NOISE:
                origin, today = TABLE[reading.attack].origin, f"{datetime.date.today()}"
                sha256 = origin.sha256 if origin else ""
                of = score.board, score.gain, score.knobs, entry.results[self.data].plugins
                found.append(Break(self.data, *of, reading, sha256, by, how, today))
        return msgspec.structs.replace(entry, broken=(*entry.broken, *found))


def _claims(chain: Mapping[str, Any]) -> bool:
    """Returns whether any defense of a chain claims an epsilon at its example values."""
    rows = (defenses.TABLE[name] for name in chain)
    return any(row.remarks.epsilon(row.example, {}) is not None for row in rows)


def _chosen(tuning: StoredRows, method: str) -> Places:
    """Returns the place of the strongest strength of a method that keeps each share of the gain."""
    every, guess = configurations(tuning), reference_of(tuning).guess
    bare = undefended(every)
    assert bare is not None, "the grid begins with undefended"
    members = [point for point in every if point.method == method]
    places: dict[tuple[str, float], int | None] = {}
    for federation in members[0].validation:
        base = bare.validation[federation]
        gained = worth.worth(bare.alone_validation.get(federation, {}), base)
        for gain in GAINS:
            places[federation, gain] = None
            for place, point in enumerate(members):
                utility = [point.validation[federation][seed] for seed in base]
                losses = choosing.accuracy_losses(utility, [*base.values()], guess)
                if choosing.keeps_accuracy(losses, gained.allowed(Goal(keep_gain=gain))):
                    places[federation, gain] = place
    return places


def _kept(places: Places, federation: str) -> list[int]:
    """Returns the places of the strengths that are attacked in a federation, from weak to strong."""
    found = (k for (trained, _), k in places.items() if trained == federation)
    return sorted({k for k in found if k is not None})


def _scores(
    rows: Mapping[str, StoredRows], method: str, places: Places, counted: Collection[str]
) -> Iterator[Score]:
    """Yields a method's score on each board at each share of the gain, by the ``counted`` attacks."""
    for board in BOARDS:
        of_board = board.rows(rows[board.federation], method, counted)
        assessed = assess(of_board, experiment_of(of_board.sweep))
        members = [c for c in assessed.configurations if c.method == method]
        limits = lower_limits.lower_limits(assessed)
        attacked = {a.configuration.number: a for a in assessed.attacked_on(board.federation)}
        alone = assessed.worth[board.federation].alone_mean
        for gain in GAINS:
            place = places.get((board.federation, gain))
            if place is None:
                trained = (board.federation, gain) in places
                yield Score(board, gain, NOT_KEPT if trained else NO_TOP)
                continue
            point = members[_kept(places, board.federation).index(place)]
            number, guesses = point.number, limits.get(point.number)
            epsilon = guesses.epsilon() if guesses else 0.0
            if number in attacked:
                yield _score(board, gain, attacked[number], alone, epsilon)
            else:
                yield Score(board, gain, DIVERGED if point.diverged == point.trials else FAILED)


def _score(board: Board, gain: float, a: Assessment, alone: float, epsilon: float) -> Score:
    """Returns the score of an assessed strength; ``epsilon`` is the lower limit that its canaries show."""
    strongest, of = a.strongest, a.configuration
    assert strongest is not None
    identity = strongest.attack.identity
    certain = [r.get("tpr_at_1e-2", r.get("read_99")) for r in strongest.attack.rows]
    measured = bool(certain) and None not in certain and not (identity and identity.named)
    return Score(
        board=board,
        gain=gain,
        outcome=SCORED,
        knobs=of.knobs,
        reading=Reading(
            leak=round(strongest.leak.mean, 5),
            limits=_limits(strongest.leak),
            attack=identity.attack if identity else "",
            variant=strongest.name,
        ),
        local_only=_number(strongest.local_only),
        certain=_number(sum(certain) / len(certain)) if measured else None,
        utility=_number(a.utility.mean) or 0.0,
        alone=_number(alone),
        kept=_number(a.kept.share.mean) if of.defended else 1.0,
        kept_limits=_limits(a.kept.share),
        verdict=str(a.verdict) if of.defended else "",
        flags=tuple(name for name, raised in _flags(a, alone, epsilon) if raised),
    )


def _number(value: float) -> float | None:
    """Returns a figure as it is written to JSON: five digits, None for NaN."""
    return None if math.isnan(value) else round(value, 5)


def _limits(estimate: Estimate) -> tuple[float, float] | None:
    lower, upper = map(float, estimate.limits)
    return None if math.isnan(lower) else (round(lower, 5), round(upper, 5))


def _flags(a: Assessment, alone: float, epsilon: float) -> list[tuple[str, bool]]:
    """Returns the warnings that a score may carry, each with whether it applies."""
    strongest, of = a.strongest, a.configuration
    assert strongest is not None
    kind = stored_rows.federation_of_kind
    ran = [f for who, f in of.attacks.items() if kind(who.federation) == a.federation]
    untrained = [(f["leak"], f["untrained_leak"]) for f in ran if f["untrained_leak"].count]
    taught = any(f["all_labels_leak"].mean > strongest.local_only + EXCESS for f in ran)
    listed = [defenses.TABLE[name].known_by.get(a.federation) for name in of.defenses]
    claims = [defenses.TABLE[name].remarks.epsilon(*of.values_of(name)) for name in of.defenses]
    return [
        ("worse than no federation", a.utility.mean < alone),
        (
            "no attack beats the local-only baseline, though all labels would teach one to",
            strongest.is_local_only and taught,
        ),
        (
            "embeddings give away no more than those of an untrained bottom",
            bool(untrained) and all(x.mean <= initial.mean + NOISE for x, initial in untrained),
        ),
        ("some seeds diverge", of.diverged > 0),
        ("classes exchanged", of.inverted > 0),
        ("canaries exceed the claimed epsilon", any(c is not None and epsilon > c for c in claims)),
        ("nobody who knows it attacked it", of.defended and not (a.known and all(listed))),
    ]
