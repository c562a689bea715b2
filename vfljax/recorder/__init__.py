"""Records what crosses between the parties of a running federation, in any framework.

    wire = vfljax.Recorder()
    message = wire.sent(party, rows, array)  # what the receiver gets; rows are any ids
    wire.received(party, message, gradient)  # the answer to that message, later
    wire.told(party, tree, node, rows)       # of boosted trees, in place of both
    wire.save("run0.npz", labels=y, columns=[x], row_ids=ids)

``vfljax attack --wire=run0.npz`` attacks what was saved. This package needs NumPy alone, and imports neither
JAX nor the framework that is recorded. ``conversion`` makes arrays of what is given, ``messages`` and
``trees`` bring messages and nodes into the form of a wire, and ``remarks`` says what makes its figures wrong.
"""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.errors import UserError, argument, user_path
from vfljax.recorder import remarks, trees
from vfljax.recorder.conversion import CLASSIFICATION, ids_of, labels_of, numbers, of_rows, places
from vfljax.recorder.messages import KeptMessage, entries, ids_of_wire, numbered
from vfljax.recorder.remarks import Remark

__all__ = ["VERSION", "Message", "Recorder", "Remark"]

VERSION = 2
"""The version of the wire format that is written (``analysis/reference/wire_format.md``)."""


class Message(NamedTuple):
    """What ``Recorder.sent`` returns: which message it was."""

    party: Hashable
    number: int
    recorder: Recorder  # whose message it is

    def __repr__(self) -> str:
        return f"Message(party={self.party!r}, number={self.number})"


class Recorder:
    """Records messages, and their answers, and writes them as a wire.

    A *message* is what a passive party sends at once: an array with one row for each person, under the ids of
    these persons. Everything is kept in memory until ``save``, 4 D bytes for a row of an array.
    """

    def __init__(self, parties: Sequence[Hashable] = ()) -> None:
        """Begins an empty recording.

        Args:
          parties: names of the passive parties, in the order in which the wire numbers them. By default they
            are those that sent anything, sorted, or in the order of their first messages if the names have no
            order, as those of different types.
        """
        if len(set(parties)) != len(parties):
            raise UserError("names a party twice", field=argument("parties"), value=[*parties])
        self._parties = tuple(parties)
        self._messages: list[KeptMessage] = []
        self._nodes: list[trees.NodeRows] = []
        self._epoch = 0
        self._shapes: dict[Hashable, tuple[int, ...]] = {}  # of a row of each party's arrays
        self._batch: tuple[Any, float] | None = None

    def sent(self, party: Hashable, rows: Any, array: Any = None) -> Message:
        """Records a message.

        Args:
          party: who sent it.
          rows: the ids of its rows [m], whole numbers or texts, the same one for the same person throughout.
            A row may be in a message twice.
          array: [m, ...] as the receiver got it, after all noise and rounding, of any library and numeric type;
            None if only answers are recorded.

        Returns:
          The message, for ``received``.

        Raises:
          UserError: for what no wire can hold. Nothing is recorded then.
        """
        self._check_party(party)
        ids = ids_of(rows, party)
        values = None if array is None else self._values(party, ids, array, "sends")
        self._messages.append(KeptMessage(party, ids, values, self._epoch))
        return Message(party, len(self._messages) - 1, self)

    def received(self, party: Hashable, message: Any, array: Any, scale: float = 1.0) -> None:
        """Records the answer to a message: the gradients of the mean loss of its batch, by row.

        Args:
          party: who receives it.
          message: which ``sent`` returned, or ids of rows [m]: then the answer is to the message of these rows
            that has none yet. Gradients of rows in another order are sorted.
          array: [m, ...] as the party got it.
          scale: a factor of the loss, as of mixed precision, by which the gradients are divided.

        Raises:
          UserError: if there is no such message, or more than one, or if it has an answer already.
        """
        if not (isinstance(scale, int | float | np.number) and 0 < float(scale) < np.inf):
            raise UserError(
                "is no factor", field=argument("scale"), value=scale, remedy="give one above 0"
            )
        order: Any = slice(None)
        if isinstance(message, Message):
            if message.recorder is not self:
                remedy = "give it to the recorder whose `sent` returned it"
                raise UserError(
                    "is of another recorder",
                    field=argument("message"),
                    value=message,
                    remedy=remedy,
                )
            if message.party != party:
                what = f"is of party {message.party!r}"
                raise UserError(
                    what, field=argument("message"), value=message, remedy=f"answer {party!r}'s"
                )
            kept = self._messages[message.number]
        else:
            kept, order = self._open(party, ids_of(message, party))
        if kept.gradients is not None:
            what = f"party {party!r} receives a second answer to a message of {len(kept.rows)} rows"
            raise UserError(what, remedy="record a message before each answer")
        values = self._values(party, kept.rows, array, "receives")
        kept.gradients = (values / np.float32(scale))[order]

    def epoch(self) -> None:
        """Ends an epoch. If this is never called, an epoch of a party ends once it has sent as many rows as
        there are."""
        self._epoch += 1

    def told(self, party: Hashable, tree: int, node: Any, rows: Any, gradients: Any = None) -> None:
        """Records that a party is told which rows are in a node of a boosted tree.

        Nodes of a tree may come level by level or depth first, but a node before those below it.

        Args:
          party: who is told.
          tree: its number, 0 for the first. With more than two classes a round has a tree a class.
          node: any number or name, another for each node of the tree.
          rows: the ids of its rows.
          gradients: of these rows [m, 1 or 2], of first and second order, if they are sent without encryption.
        """
        self._check_party(party)
        if not isinstance(tree, int | np.integer) or tree < 0:
            raise UserError(
                "is no number of a tree",
                field=argument("tree"),
                value=tree,
                remedy="give 0, 1, ...",
            )
        ids = ids_of(rows, party)
        g = None if gradients is None else numbers(gradients, f"party {party!r} is told")
        if g is not None and (g.ndim != 2 or len(g) != len(ids) or g.shape[1] not in (1, 2)):
            what = f"party {party!r} is told gradients of shape {list(g.shape)} of {len(ids)} rows"
            raise UserError(what, remedy="give one or two numbers a row")
        self._nodes.append(trees.NodeRows(party, int(tree), node, ids, g))

    def torch(self, module: Any, party: Hashable) -> Any:
        """Records what a PyTorch module returns within ``batch``, and the gradients that come back there.

        Args:
          module: whose output is what the label party gets. If noise is added to what a bottom model returns,
            or it is rounded, give a module that returns the result, such as a ``torch.nn.Identity`` behind it.
          party: whose module it is.

        Returns:
          The handle of the hook; its ``remove()`` ends the recording.
        """

        def record(_module: Any, _inputs: Any, output: Any) -> None:
            if self._batch is None:
                return
            rows, scale = self._batch
            if not hasattr(output, "register_hook"):
                what = f"the module of party {party!r} returns a {type(output).__name__}"
                raise UserError(what, remedy="give a module that returns the tensor that is sent")
            message = self.sent(party, rows, output)
            if output.requires_grad:
                # a hook of the tensor: its gradient may come after the ``with``, and after other messages
                output.register_hook(lambda g: self.received(party, message, g, scale))

        return module.register_forward_hook(record)

    @contextlib.contextmanager
    def batch(self, rows: Any, scale: float = 1.0) -> Iterator[None]:
        """Within it, the modules of ``torch`` are recorded. Their gradients may come later.

        Args:
          rows: the ids of the batch.
          scale: the factor of the loss, ``GradScaler.get_scale()`` with mixed precision.
        """
        if self._batch is not None:
            raise UserError("a batch is begun within another one.")
        self._batch = rows, scale
        try:
            yield
        finally:
            self._batch = None

    def save(
        self,
        path: str | os.PathLike[str],
        labels: Any = None,
        columns: Sequence[Any] | Mapping[Hashable, Any] = (),
        row_ids: Any = None,
        known_rows: Any = None,
        known_labels: Any = None,
        task: str = CLASSIFICATION,
        batch_size: int | None = None,
        drop_unanswered: bool = False,
        say: Callable[[str], Any] = print,
    ) -> tuple[Remark, ...]:
        """Writes the recording to a file of exactly this name, in the form of an .npz file.

        Args:
          path: of the file.
          labels: the true label of each row [N], to score with: a class 0..C-1, or a number.
          columns: each party's own columns [N, F] as numbers, by party or in the order of the parties; None or
            nothing for a party of which they are not known.
          row_ids: the id of each row of ``labels`` and ``columns`` [N]. By default ids are 0..N-1.
          known_rows: ids of the rows whose labels the attackers know.
          known_labels: their labels; by default those of ``labels``.
          task: "regression" if labels are numbers, else "classification".
          batch_size: the number that the loss of each message was divided by, if they differ in size.
          drop_unanswered: leave out messages that were never answered, such as those of evaluation.
          say: is given each remark.

        Returns:
          What may make figures wrong, which ``say`` was given too.

        Raises:
          UserError: for what no wire can hold. The recording stays, and no file is written.
        """
        place = user_path(path)
        messages = [m for m in self._messages if m.gradients is not None or not drop_unanswered]
        recorded = [*messages, *self._nodes]
        parties = numbered([*dict.fromkeys(each.party for each in recorded)], self._parties)
        if self._nodes and messages:
            raise UserError("nodes of trees and embeddings are recorded: a wire holds one of both.")
        ids = ids_of_wire([each.rows for each in recorded], row_ids, labels, columns)
        arrays: dict[str, np.ndarray] = {"version": np.array(VERSION)}
        if any(party != number for number, party in enumerate(parties)):
            arrays["parties"] = np.array([str(party) for party in parties])
        if row_ids is not None or not np.array_equal(ids, np.arange(len(ids))):
            arrays["row_ids"] = ids
        if labels is not None:
            arrays["labels"] = labels_of(of_rows("labels", labels, len(ids), 1), task)
        owned = columns if isinstance(columns, Mapping) else dict(zip(parties, columns))
        if strangers := [party for party in owned if party not in parties]:
            raise UserError(
                "names a party that sent nothing", field=argument("columns"), value=strangers[0]
            )
        if not isinstance(columns, Mapping) and len(columns) > len(parties):
            what = f"are of {len(columns)} parties, and {len(parties)} sent something"
            raise UserError(("columns ", what), remedy="give them by party")
        for number, party in enumerate(parties):
            if owned.get(party) is not None:
                name = f"columns of party {party!r}"
                arrays[f"party{number}_columns"] = of_rows(name, owned[party], len(ids), 2)
        if batch_size is not None:
            arrays["batch_size"] = np.array(batch_size)
        if known_rows is not None:
            arrays["known_rows"] = places(ids_of(known_rows), ids, "known_rows")
        if known_labels is not None:
            count = len(arrays.get("known_rows", ()))
            of_known = of_rows("known_labels", known_labels, count, 1, "known rows")
            arrays["known_labels"] = labels_of(of_known, task)
        if task != CLASSIFICATION:
            arrays["task"] = np.array(task)
        found: list[Remark] = []
        broken: dict[Hashable, int] = {}  # answers that are not finite
        answers = any(m.gradients is not None for m in messages)
        for number, party in enumerate(parties):
            if self._nodes:
                of_party = [each for each in self._nodes if each.party == party]
                arrays |= trees.arrays(
                    number, of_party, ids, 1 + max(each.tree for each in self._nodes)
                )
            else:
                of_party = [(k, m) for k, m in enumerate(messages) if m.party == party]
                width = math.prod(self._shapes[party]) if party in self._shapes else None
                of, not_finite = entries(of_party, ids, width, answers, self._epoch > 0)
                arrays |= {f"party{number}_{name}": array for name, array in of.items()}
                found, broken[party] = found + remarks.not_finite(party, *not_finite), not_finite[1]
        if self._nodes:
            arrays = trees.padded(arrays)
        found += remarks.of_wire(arrays, parties, len(self._messages) - len(messages), broken)
        found += remarks.flattened(parties, self._shapes)
        partial = place.with_name(f"{place.name}.partial")
        try:
            with partial.open("wb") as file:  # a name would be given the ending .npz
                np.savez(file, allow_pickle=False, **arrays)
            os.replace(partial, place)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for remark in found:
            say(f"{pathlib.Path(path).name}: {remark.text}")
        return tuple(found)

    def _check_party(self, party: Hashable) -> None:
        if self._parties and party not in self._parties:
            remedy = f"choose one of {', '.join(map(repr, self._parties))}"
            raise UserError(
                "is no party of this recorder", field=argument("party"), value=party, remedy=remedy
            )

    def _values(self, party: Hashable, ids: np.ndarray, array: Any, verb: str) -> np.ndarray:
        """Returns an array of a party as [m, D], and keeps the shape of its rows."""
        who = f"party {party!r} {verb}"
        values = numbers(array, who)
        if not values.ndim or len(values) != len(ids):
            what = f"{who} an array of shape {list(values.shape)} for {len(ids)} rows"
            raise UserError(what, remedy="its first axis must be that of the rows")
        shape = self._shapes.setdefault(party, values.shape[1:])
        if int(np.prod(values.shape[1:])) != int(np.prod(shape)):
            what = f"{who} rows of shape {list(values.shape[1:])} after rows of shape {list(shape)}"
            raise UserError(what, remedy="record cuts of several shapes by recorders of their own")
        return values.reshape(len(ids), int(np.prod(shape)))

    def _open(self, party: Hashable, ids: np.ndarray) -> tuple[KeptMessage, np.ndarray]:
        """Returns the message of these rows that has no answer, and the places of its rows among ``ids``."""
        waiting = [m for m in self._messages if m.party == party and m.gradients is None]
        key = np.sort(ids)
        fit = [m for m in waiting if np.array_equal(np.sort(m.rows), key)]
        if len(fit) != 1:
            what = f"party {party!r} receives an answer for {len(ids)} rows, and "
            what += f"{len(fit) or 'no'} messages of these rows have none yet"
            raise UserError(what, remedy="give what ``sent`` returned in place of the rows")
        if len(np.unique(ids)) < len(ids) and not np.array_equal(ids, fit[0].rows):
            what = f"party {party!r} receives an answer for rows that are in it twice, in another order"
            raise UserError(what, remedy="give them in the order of the message")
        order = np.argsort(ids, kind="stable")[np.argsort(np.argsort(fit[0].rows, kind="stable"))]
        return fit[0], order
