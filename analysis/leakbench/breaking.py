"""Entries are broken by files that hold the scores of an attack, whose code is not run to check them.

A file is an .npz as ``numpy.savez`` writes it, like a wire, and nothing in it is executed. It has an array [5,
N, C] for each place that it breaks, named by ``array_name``: for each of the five seeds the scores of every
recorded training row, in the rows' order in the recorded exchange, for every class. The scores are compared
with the true labels by ``attack_runs.scoring``, as those of every attack are. On boards whose attackers know
labels, the attack knew those of the recorded exchange: it names its classes itself, and these rows are not
scored. On boards without them, the names of the classes are granted, as to attacks that know no label.

A reader (``analysis.readers``) is run on the bench's own sweeps, and its scores become such a file.
"""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from analysis.leakbench import exchanges
from analysis.leakbench.bench import NOISE, TRAINED, Bench
from analysis.leakbench.boards import BOARDS, KNOWN, Board
from analysis.leakbench.entry_files import Break, Data, Entry, Reading, Score, sha256_of
from analysis.readers import protocol
from analysis.readers.protocol import Reader
from vfljax.attack_runs.scoring import AttackOutput, Scorer
from vfljax.datasets.npz import arrays as arrays_of
from vfljax.datasets.splits import label_groups
from vfljax.errors import UserError, short_path, unknown
from vfljax.report.frames import scored_rows
from vfljax.report.limits import SHOWN_LEVEL, half_row, limits
from vfljax.sweep import train
from vfljax.sweep.grid import parse
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import make_plan, recorded
from vfljax.types import MALICIOUS, HostArray, Scores, federation_of

MOST_BYTES = 64 << 20  # of the arrays of a file
AGREES = 1e-3  # more than another machine moves the leak of the same scores
Place = tuple[Board, float]


class Truth(NamedTuple):
    """What scores of a data set's rows are compared with."""

    scorer: Scorer
    shape: tuple[int, int, int]  # seeds, recorded training rows, classes
    rows: int  # m of ``half_row``


def truth(config: Mapping[str, Any]) -> Truth:
    """Returns the true labels of a data set's config, split as for the boards. Nothing is trained."""
    experiment = parse(dict(config))
    plan = make_plan(experiment)
    rows = scored_rows(train.header(plan, "")["data"])
    plan = recorded(plan)
    groups = label_groups(plan.dataset)
    arrays = split_arrays(
        plan.dataset.labels, plan.splits, experiment.known_draws, plan.candidates, groups
    )
    width = experiment.execution.width or None
    scorer = Scorer(arrays, width, KNOWN, plan.effort.scoring, plan.positive)
    return Truth(scorer, (*arrays["train"].shape, plan.dataset.num_classes), rows)


def array_name(board: Board, gain: float) -> str:
    """Returns the name of the array for a board and a share of the gain.

    >>> array_name(Board("split", 40, True), 0.5)
    'split_malicious_known40_kept50'
    """
    kind = f"{board.federation}{'_malicious' * board.malicious}"
    return f"{kind}_known{board.known}_kept{100 * gain:.0f}"


def arrays_by(name: str, reader: Reader, place: Bench, entry: Entry) -> dict[str, HostArray]:
    """Returns the scores [seeds, N, C] that a reader gives wherever an entry has a figure, by array name.

    Args:
      name: of the reader.
      reader: the function.
      place: the data set and its sweeps; strengths that these lack are trained.
      entry: with its results on the data set. Where a seed diverged, there are no scores.
    """
    found: dict[str, dict[int, HostArray]] = {}
    for federation in TRAINED:
        strengths = exchanges.chosen(entry, place.data, federation)
        if not strengths:
            continue
        sweep = exchanges.sweep_of(place, entry, federation, [knobs for knobs, _ in strengths])
        stored = protocol.opened(sweep.workdir)
        classes = stored.plan.dataset.num_classes
        for knobs, gains in strengths:
            for of in protocol.seen(stored, exchanges.trials_of(sweep, entry, knobs)):
                malicious = federation_of(of.row["federation"]).kind == MALICIOUS
                for board in BOARDS:
                    if (board.federation, board.malicious) != (federation, malicious):
                        continue
                    known = protocol.known_of(of, board.known)
                    scores = protocol.scores_of(name, reader, of, known, classes)
                    for gain in gains:
                        score = entry.score(place.data, board, gain)
                        if score is not None and score.reading and score.knobs == knobs:
                            by_seed = found.setdefault(array_name(board, gain), {})
                            by_seed[int(of.row["seed"])] = scores
    seeds = int(place.config["seeds"])
    return {
        array: np.stack([by_seed[seed] for seed in range(seeds)])
        for array, by_seed in found.items()
        if len(by_seed) == seeds
    }


def figures(entry: Entry, data: Data) -> dict[Place, Score]:
    """Returns the scores of an entry by place. Raises UserError if none of them has a figure to be broken."""
    result = entry.results.get(data)
    scores = {score.place: score for score in (result.scores if result else ())}
    if not any(score.reading for score in scores.values()):
        what = f"{entry.name} has no figure on {data} that could be broken"
        raise UserError(what, remedy="run the entry first")
    return scores


def readings(file: pathlib.Path, entry: Entry, data: Data, of: Truth) -> dict[Place, Reading]:
    """Returns what a file of scores reads of an entry, at each place where it counts.

    An array counts on the board that it names, and on every board of the same federation that allows as much,
    at each share of the gain for which the same strength was chosen. Of several arrays the largest reading
    counts.

    Args:
      file: of scores.
      entry: with its results on the data set.
      data: the name of the data set.
      of: the data set's.

    Raises:
      UserError: of one line, for a file that is not what the module's docstring says.
    """
    scores = figures(entry, data)
    if not file.is_file():
        raise UserError(f"there is no file {short_path(file)}", remedy="give the file of scores")
    arrays = arrays_of(file, max_bytes=MOST_BYTES, of_rows=False)
    places = {array_name(*place): place for place in scores}
    if not arrays:
        raise UserError(f"{short_path(file)} holds no array", remedy=f"name one {min(places)}")
    found: dict[Place, Reading] = {}
    for name, array in arrays.items():
        if name not in places:
            raise unknown(f"array of {short_path(file)}", name, places)
        board, gain = places[name]
        score = scores[board, gain]
        if score.reading is None:
            what = f"{short_path(file)}: {entry.name} has no figure at {name} ({score.outcome})"
            raise UserError(what, remedy="leave that array out")
        reading = _reading(_checked(file, name, array, of), board, of)
        for place in _counting(board, score, scores):
            if place not in found or reading.leak > found[place].leak:
                found[place] = reading
    return found


def _counting(board: Board, score: Score, scores: Mapping[Place, Score]) -> Iterator[Place]:
    """Yields the places at which a reading of a board counts at a score's strength."""
    for place, other in scores.items():
        allows = place[0].known >= board.known and place[0].malicious >= board.malicious
        same = place[0].federation == board.federation and other.knobs == score.knobs
        if allows and same and other.reading is not None:
            yield place


def _checked(file: pathlib.Path, name: str, array: HostArray, of: Truth) -> HostArray:
    """Returns an array of scores as float32 [seeds, N, C]."""
    where = f"{short_path(file)}: {name}"
    if array.dtype.kind not in "iuf" or array.shape != of.shape:
        what = f"{where} is {array.dtype} of shape {list(array.shape)}"
        remedy = f"give numbers {list(of.shape)}: seeds, rows of the recorded exchange, classes"
        raise UserError(what, remedy=remedy)
    with np.errstate(over="ignore"):
        scores = array.astype(np.float32)
    for seed, row, label in np.argwhere(~np.isfinite(scores))[:1].tolist():
        what = f"{where} holds {array[seed, row, label]} for seed {seed}, row {row}, class {label}"
        raise UserError(what, remedy="give a finite score of every class for every row")
    return scores


def _reading(scores: HostArray, board: Board, of: Truth) -> Reading:
    """Returns the mean leak of scores [seeds, N, C] with its limits."""
    outputs = []
    for seed, of_seed in enumerate(scores):
        sent = np.ones(of.shape[1], bool)
        on_host: Any = np.int32(seed), np.int32(board.known), sent, np.bool_(False), np.int32(KNOWN)
        parts: Any = Scores(of_seed[None], None)  # of one draw of the known labels
        outputs.append(AttackOutput(parts, *on_host))
    leaks = np.array([figures["leak"] for figures in of.scorer.figures_on_host(outputs)])
    found = limits(leaks, half_row(of.rows), SHOWN_LEVEL)
    lower, upper = (round(float(np.clip(x, 0, 1)), 5) for x in (found.lower, found.upper))
    return Reading(
        leak=round(float(found.mean), 5),
        limits=(lower, upper) if np.isfinite(found.lower) else None,
        attack="",
        variant="",
        by_seed=tuple(round(float(leak), 5) for leak in leaks),
        rows=of.rows,
    )


def broken_by(
    file: pathlib.Path, entry: Entry, data: Data, of: Truth, by: str, how: str
) -> tuple[Entry, dict[Place, Reading]]:
    """Records where a file of scores reads more of an entry than is known.

    Args:
      file: of scores.
      entry: with its results on the data set.
      data: the name of the data set.
      of: the data set's.
      by: who breaks the entry.
      how: what the attack does.

    Returns:
      The entry with a ``Break`` for each place where the file reads at least .01 more than is known, which
      names the file ``stored_name``; and all that it reads.
    """
    found, breaks = readings(file, entry, data, of), []
    sha256, today = sha256_of(file), f"{datetime.date.today()}"
    for (board, gain), reading in found.items():
        known, score = entry.best_known(data, board, gain), entry.score(data, board, gain)
        assert known is not None, "readings are of scores with a figure"
        assert score is not None, "likewise"
        if reading.leak >= known[0].leak + NOISE:
            where = data, board, gain, score.knobs, entry.results[data].plugins
            name = stored_name(entry, sha256)
            breaks.append(Break(*where, reading, sha256, by, how, today, scores=name))
    return msgspec.structs.replace(entry, broken=(*entry.broken, *breaks)), found


def stored_name(entry: Entry, sha256: str) -> str:
    """Returns the name under which a file of scores is kept beside an entry."""
    return f"{entry.name}.{sha256[:12]}.npz"


def score_again(entry: Entry, folder: pathlib.Path, data: Data, of: Truth) -> int:
    """Scores the files of an entry's breaks again, and returns how many breaks were found to be as recorded.

    Breaks of a strength or a plugin that the entry no longer has are left out; they count nowhere.

    Args:
      entry: to be checked.
      folder: of the entry, which holds the files.
      data: the name of the data set.
      of: the data set's.

    Raises:
      UserError: for a break that its file does not show.
    """
    count, by_file = 0, dict[str, dict[Place, Reading]]()
    for each in entry.broken:
        score = entry.score(data, each.board, each.gain) if each.data == data else None
        same = score is not None and (score.knobs, entry.results[data].plugins) == (
            each.knobs,
            each.plugins,
        )
        if not each.scores or not same:
            continue
        if each.scores not in by_file:
            by_file[each.scores] = readings(folder / each.scores, entry, data, of)
        found = by_file[each.scores].get((each.board, each.gain))
        if found is None or abs(found.leak - each.reading.leak) > AGREES:
            reads = "nothing" if found is None else f"{found.leak}"
            what = f"{entry.name}: {each.scores} reads {reads} and not {each.reading.leak}"
            raise UserError(what, remedy="remove that break, or give the file again by --break")
        count += 1
    return count
