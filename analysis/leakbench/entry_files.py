"""Entries of LeakBench: a method with its strengths to try, its scores, and the attacks that read more.

An entry is a JSON file, and nothing in it is executed: its method names rows of the table of defenses, or of
a plugin that the command line names. ``analysis/applications/leakbench.md`` explains every field.
"""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import BOARDS, GAINS, UNDEFENDED, Board
from vfljax import store
from vfljax.errors import UserError, short_path, unknown

Data = Literal["digits", "breast_cancer", "spambase", "default_credit", "bank_marketing", "cifar10"]
Rate = Annotated[float, msgspec.Meta(ge=0, le=1)]
Share = Annotated[float, msgspec.Meta(ge=-100, le=100)]
Value = int | float | str | bool  # a knob or an option
Axis = Annotated[list[Value], msgspec.Meta(min_length=1, max_length=12)]
Chain = dict[str, dict[str, Axis | Value]]
"""Defenses with their knobs and options, as in ``config.grid``; one knob has a list, from weak to strong."""
Knobs = dict[str, Value]
SCORED = "scored"
ROUNDED = 1e-4  # more than figures of five digits lose
NOT_KEPT = "no strength keeps so much"


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """The leak that the strongest attack reads, as a mean over seeds."""

    leak: Rate
    limits: tuple[Rate, Rate] | None
    attack: str  # its name in the table; "" for the local-only baseline and a file of scores
    variant: str  # the attack with its options
    by_seed: tuple[
        Rate | None, ...
    ] = ()  # the leak of each run; () in results that did not store it
    rows: Annotated[int, msgspec.Meta(ge=0)] = 0  # m of ``vfljax.report.limits.half_row``


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """The score of a method on one board, at the strength for a share of the gain; means over seeds."""

    board: Board
    gain: float  # of ``GAINS``
    outcome: str  # SCORED, or why there is no figure
    knobs: Knobs = {}
    reading: Reading | None = None  # of AutoLeak
    local_only: Rate | None = None  # what the passive party reads without the federation
    certain: Rate | None = None  # TPR at 1 % FPR; of more classes: share read with precision .99
    utility: Rate = 0.0
    alone: Rate | None = None  # utility of the label party alone
    kept: Share | None = None  # share of the federation's gain; None if the gain is small
    kept_limits: tuple[Share, Share] | None = None
    verdict: str = ""
    flags: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[Board, float]:
        """The board and the share of the gain."""
        return self.board, self.gain


class Verified(msgspec.Struct, frozen=True):
    """The record that scores were made anew from the entry alone and agreed with those of its author."""

    date: str
    revision: str
    machine: str
    tolerance: float  # the largest difference of a leak or a utility that was allowed
    difference: float  # the largest that was found
    sha256: str  # ``digest`` of the scores that were made anew, which the result holds


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The scores of an entry on one data set, and what made them."""

    autoleak: str  # the suite's version
    revision: str
    date: str
    versions: dict[str, str]
    plugins: dict[str, str]  # row of the method -> SHA-256 of its plugin, for rows of plugins
    scores: tuple[Score, ...]
    verified: Verified | None = None  # None: the scores stand on their author's word


class Break(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attack that reads more of an entry than AutoLeak did."""

    data: Data
    board: Board
    gain: float
    knobs: Knobs  # of the entry's score
    plugins: dict[str, str]  # of the entry's result
    reading: Reading
    sha256: str  # of the attack's plugin or the file of scores; "" for an attack of this library
    by: str
    how: str
    date: str
    scores: str = ""  # the file of scores, beside the entry; "" for an attack that was run


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The contents of an entry's file."""

    method: Chain  # {} is undefended
    title: str = ""
    venue: str = ""
    link: str = ""
    plugin: str = ""  # file of the method's rows, beside the entry; "" for rows of this library
    knobs: dict[Data, Chain] = {}  # values that replace the method's on a data set
    reported: tuple[dict[str, str], ...] = ()  # "claim" and "source" of papers' results
    results: dict[Data, Result] = {}
    broken: tuple[Break, ...] = ()
    name: str = ""  # of the file without suffix; the file does not store it

    def chain(
        self, data: Data | None, places: Iterable[int] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Returns the method as ``config.grid`` has it.

        Args:
          data: the name of the data set; None for the method without a data set's own knobs.
          places: of the strengths to keep; None for all.
        """
        more = self.knobs.get(data, {}) if data else {}
        whole = {name: knobs | more.get(name, {}) for name, knobs in self.method.items()}

        def axis(values: Any) -> Any:
            if not isinstance(values, list):
                return values
            return tuple(values if places is None else (values[k] for k in places))

        return {n: {knob: axis(v) for knob, v in knobs.items()} for n, knobs in whole.items()}

    def score(self, data: Data, board: Board, gain: float) -> Score | None:
        """Returns the score on a board at a share of the gain, None if the entry was not run there.

        Args:
          data: the name of the data set.
          board: of the data set.
          gain: one of ``GAINS``.
        """
        scores = self.results[data].scores if data in self.results else ()
        return next((s for s in scores if s.place == (board, gain)), None)

    def known(self, data: Data, board: Board, gain: float) -> list[tuple[Reading, Break | None]]:
        """Returns every reading of a score with its ``Break`` (None: AutoLeak's, the first); [] without one.

        Args:
          data, board, gain: as for ``score``.
        """
        score = self.score(data, board, gain)
        if score is None or score.reading is None:
            return []
        same = data, board, gain, score.knobs, self.results[data].plugins
        further = (((b.data, b.board, b.gain, b.knobs, b.plugins), b) for b in self.broken)
        return [(score.reading, None), *((b.reading, b) for place, b in further if place == same)]

    def best_known(
        self, data: Data, board: Board, gain: float
    ) -> tuple[Reading, Break | None] | None:
        """Returns the largest reading of ``known``, which orders entries; None without one."""
        every = self.known(data, board, gain)
        return max(every, key=lambda pair: pair[0].leak, default=None)


def read(path: pathlib.Path) -> Entry:
    """Reads an entry and checks it.

    Raises:
      UserError: of one line, for a file that is no entry, and for a field without a meaning.
    """
    remedy = "give it the fields that analysis/applications/leakbench.md explains"
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise UserError(f"{short_path(path)} is no entry ({error})", remedy=remedy) from error
    if bool(entry.method) == (path.stem == UNDEFENDED):
        what = f"{short_path(path)} has {'a' if entry.method else 'no'} method"
        raise UserError(what, remedy=f"{UNDEFENDED}.json alone has the method {{}}")
    for chain in entry.knobs.values():
        if unknown_names := {*chain} - {*entry.method}:
            raise unknown(
                f"defense in knobs of {short_path(path)}", min(unknown_names), entry.method
            )
    for data in (None, *entry.knobs):
        chain = entry.chain(data)
        axes = [f"{n}.{k}" for n, v in chain.items() for k in v if isinstance(v[k], tuple)]
        if len(axes) > 1:
            what = f"{short_path(path)} has lists of {' and '.join(axes)}"
            raise UserError(what, remedy="let one knob have a list, from weak to strong")
    return msgspec.structs.replace(entry, name=path.stem)


def write(path: pathlib.Path, entry: Entry) -> None:
    """Writes an entry to a file.

    Args:
      path: of the file.
      entry: to be written.
    """
    fields = msgspec.to_builtins(entry)
    del fields["name"]
    path.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(path, msgspec.json.format(msgspec.json.encode(fields), indent=1) + b"\n")


def digest(scores: Iterable[Score]) -> str:
    """Returns the SHA-256 of scores, by which a ``Verified`` record names them."""
    return hashlib.sha256(msgspec.json.encode([*scores])).hexdigest()


def sha256_of(file: pathlib.Path) -> str:
    """Returns the SHA-256 of a file, "" if there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def check(entry: Entry, folder: pathlib.Path) -> None:
    """Checks the stored results of an entry, without computing any figure again.

    Args:
      entry: to be checked.
      folder: the folder of its file, which holds its plugin and files of scores.

    Raises:
      UserError: for missing boards, scores of another version of AutoLeak, a plugin or a file of scores that
        has changed, and scores that are not those of their means by seed or of their ``Verified`` record.
    """
    version, places = autoleak().version, [(board, gain) for board in BOARDS for gain in GAINS]
    rows, named = [n for n in entry.method if ":" in n], pathlib.PurePath(entry.plugin).name
    if rows and (not named or named != entry.plugin):
        what = f"{entry.name}: plugin={entry.plugin!r} is no file of {', '.join(rows)}"
        raise UserError(what, remedy="name the file that lies beside the entry")
    for data, result in entry.results.items():
        if result.autoleak != version:
            what = f"{entry.name} on {data} is of AutoLeak {result.autoleak}, and this is {version}"
            raise UserError(what, remedy="run the entry again")
        if [score.place for score in result.scores] != places:
            raise UserError(f"{entry.name} lacks boards of {data}", remedy="run the entry again")
        if rows and result.plugins != dict.fromkeys(rows, sha256_of(folder / entry.plugin)):
            what = f"{entry.name} on {data}: {entry.plugin} has changed since its scores"
            raise UserError(what, remedy="restore the file, or run the entry again")
        readings = [score.reading for score in result.scores]
        readings += [each.reading for each in entry.broken if each.data == data]
        for reading in (reading for reading in readings if reading is not None):
            leaks = [leak for leak in reading.by_seed if leak is not None]
            if leaks and abs(sum(leaks) / len(leaks) - reading.leak) > ROUNDED:
                what = (
                    f"{entry.name} on {data}: {reading.leak} is not the mean of its leaks by seed"
                )
                raise UserError(what, remedy="run the entry again")
        if result.verified and result.verified.sha256 != digest(result.scores):
            what = f"{entry.name} on {data}: its scores have changed since they were verified"
            raise UserError(what, remedy="restore them, or remove verified from the file")
    for each in (each for each in entry.broken if each.scores):
        named = pathlib.PurePath(each.scores).name == each.scores
        if not named or sha256_of(folder / each.scores) != each.sha256:
            what = f"{entry.name}: {each.scores} is not the file of {each.by}'s scores"
            raise UserError(what, remedy="restore the file beside the entry")
