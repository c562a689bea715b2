"""Programs in torch's files: read where they are plain tensors, refused and never run otherwise."""

import pickle
import struct

import numpy as np
import pytest

from tests.datasets.refusals import refused
from tests.models.weight_files import Attack, torch_zip
from vfljax.errors import UserError
from vfljax.models import weights
from vfljax.models.weights import read


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_program_hidden_in_a_torch_file_is_refused_and_not_run(tmp_path, protocol):
    mark = tmp_path / "mark"
    program = pickle.dumps({"w": Attack(str(mark))}, protocol=protocol)
    path = torch_zip(tmp_path / "x.pt", program)
    message = refused(read, path)
    assert not mark.exists()
    if protocol in (2, 3, 4, 5):
        assert "'posix.mkdir'" in message or "'nt.mkdir'" in message
    pickle.loads(program)  # the program itself does act, so the refusal is what stopped it
    assert mark.exists()


REFUSED = {
    "eval": b"c__builtin__\neval\n(X\x01\x00\x00\x001tR.",
    "getattr": b"cbuiltins\ngetattr\n(ccollections\nOrderedDict\nX\x01\x00\x00\x00xtR.",
    "torch's loader": b"ctorch\nload\n(X\x01\x00\x00\x00xtR.",
    "dots in a name": b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.__class__\x93.",
    "instances by opcode": b"(ccollections\nOrderedDict\no.",
    "an extension code": b"\x80\x02\x82\x01.",
    "a reserved gigabyte": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".",
    "no tensor": b"\x80\x02}X\x01\x00\x00\x00aK\x01s.",
    "no dictionary": b"\x80\x02K\x01.",
    "a tensor without storage": (
        b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n(K\x00K\x00))tRs."
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_programs_that_build_anything_else_are_one_line(tmp_path, case):
    assert "x.pt" in refused(read, torch_zip(tmp_path / "x.pt", REFUSED[case]))


def test_attributes_in_a_torch_file_are_never_set(tmp_path):
    program = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}X\x0c\x00\x00\x00__defaults__K\x01s\x86b0}."
    )
    rebuild = weights._NAMES["torch._utils._rebuild_tensor_v2"]
    with pytest.raises(UserError, match="holds no tensor"):
        read(torch_zip(tmp_path / "x.pt", program))
    assert rebuild.__defaults__ is None


def one_tensor(offset, size, stride, count=6, dtype="Float"):
    """The program of {'a': tensor}, sizes as given."""

    def number(n):
        return b"J" + struct.pack("<i", n)

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = (
        f"(X\x07\x00\x00\x00storagectorch\n{dtype}Storage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    )
    return (
        b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n("
        + storage.encode() + number(count) + b"tQ"
        + number(offset) + numbers(size) + numbers(stride) + b"\x89}tRs."
    )  # fmt: skip


VALUES = np.arange(6, dtype="<f4")


def test_a_tensor_written_by_hand_is_read(tmp_path):
    path = torch_zip(tmp_path / "x.pt", one_tensor(1, (2, 2), (3, 1)), **{"0": VALUES.tobytes()})
    np.testing.assert_array_equal(read(path)["a"], [[1, 2], [4, 5]])


OUTSIDE = {
    "past the end": one_tensor(1, (2, 3), (3, 1)),
    "before the start": one_tensor(-1, (2,), (1,)),
    "backwards": one_tensor(5, (2,), (-1,)),
    "fewer strides": one_tensor(0, (2, 3), (1,)),
    "a negative size": one_tensor(0, (-2,), (1,)),
    "a terabyte of one number": one_tensor(0, (2**20, 2**20), (0, 0)),
    "more numbers than the record": one_tensor(0, (8,), (1,), count=8),
    "a record of another type": one_tensor(0, (6,), (1,), dtype="Double"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_a_tensor_outside_its_storage_is_one_line(tmp_path, case):
    path = torch_zip(tmp_path / "x.pt", OUTSIDE[case], **{"0": VALUES.tobytes()})
    with pytest.raises(UserError, match="damaged"):
        read(path)


def test_a_whole_pickled_model_and_numpy_objects_are_refused_by_name(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pt")
    with pytest.raises(UserError, match="'torch.nn.modules.linear.Linear'"):
        read(str(tmp_path / "model.pt"))
    torch.save({"a": np.float64(1)}, tmp_path / "scalar.pt")
    with pytest.raises(UserError, match=r"'numpy.*scalar'"):
        read(str(tmp_path / "scalar.pt"))
