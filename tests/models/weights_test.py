"""Weights from files: every format's round trip, one line for each fault, and their places."""

import collections
import os
import pickle
import struct
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.fuzzing import few_or_many
from tests.datasets.refusals import one_line
from tests.models.drawing import draw
from tests.models.weight_files import FORMATS, NUMBERS, Attack, bert_tensors, same, write
from vfljax.errors import UserError
from vfljax.models import MLP, weights
from vfljax.models.bert import Bert
from vfljax.models.weights import load, read


@pytest.mark.parametrize("suffix", [*FORMATS, ".pth", ".bin", ".PT"])
def test_every_format_gives_back_its_numbers(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix.lower()}", NUMBERS)
    os.rename(path, tmp_path / f"x{suffix}")
    same(read(str(tmp_path / f"x{suffix}")), NUMBERS)


@pytest.mark.parametrize("protocol", [2, 4])
def test_views_of_all_kinds_come_out_of_a_torch_file_as_torch_shows_them(tmp_path, protocol):
    torch = pytest.importorskip("torch")
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    state = collections.OrderedDict(
        whole=base,
        transposed=base.T,
        inner=base[1:3, 2:5],
        steps=base[::2, ::3],
        row=base[2],
        expanded=torch.tensor([1.0, 2.0])[:, None].expand(2, 5),
        scalar=torch.tensor(3.5),
        empty=base[:0],
        parameter=torch.nn.Parameter(base[:2].clone()),
        bfloat16=(base / 7).to(torch.bfloat16).T,
        half=base.half(),
        double=base.double()[1],
        **{str(kind)[6:]: base.to(kind) for kind in (torch.int64, torch.int32, torch.int16)},
        **{str(kind)[6:]: base.to(kind)[1:] for kind in (torch.int8, torch.uint8, torch.bool)},
    )
    torch.save(state, tmp_path / "x.pt", pickle_protocol=protocol)
    found = read(str(tmp_path / "x.pt"))
    assert found["bfloat16"].dtype == np.float32
    expected = {
        k: (v.float() if v.dtype == torch.bfloat16 else v).detach().numpy()
        for k, v in state.items()
    }
    same(found, expected)
    found["whole"][:] = 0  # arrays of their own, though the file shares storages
    np.testing.assert_array_equal(found["row"], expected["row"])


def test_a_module_s_state_dict_and_its_wrappings_are_read(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    expected = {k: v.numpy() for k, v in model.state_dict().items()}
    parallel = {f"module.{k}": v for k, v in model.state_dict().items()}
    history = {"epoch": 300, "accuracy": 0.5, "best": None, "rates": [0.1, 0.2], "seed": 2**40}
    for number, saved in enumerate(
        [
            model.state_dict(),
            {"state_dict": model.state_dict(), **history},
            {"model": parallel, "done": True, "shape": torch.Size([1, 2])},
        ]
    ):
        torch.save(saved, tmp_path / f"{number}.pth")
        same(read(str(tmp_path / f"{number}.pth")), expected)


def test_names_and_types_are_the_file_s_where_they_are_numbers_of_this_machine(tmp_path):
    mixed = {"module.w": np.ones(2), "b": np.zeros(3)}  # a prefix that not every name has
    same(read(write(tmp_path / "x.npz", mixed)), mixed)
    big = read(write(tmp_path / "x.npz", {"x": np.asarray([1.5, 2.5], ">f4")}))
    same(big, {"x": np.asarray([1.5, 2.5], np.float32)})
    half = np.asarray(jnp.asarray([1.0, -2.5, 3.140625, 1e-30], jnp.bfloat16))
    found = read(write(tmp_path / "x.safetensors", {"x": half}))
    same(found, {"x": half.astype(np.float32)})


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_hugging_face_folder_is_its_weights(tmp_path, name):
    write(tmp_path / name, NUMBERS)
    (tmp_path / "config.json").write_text("{}")
    same(read(str(tmp_path)), NUMBERS)


def legacy(path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(2)}, path, _use_new_zipfile_serialization=False)


def objects(path):
    np.savez(path, w=np.asarray([Attack(str(path.with_suffix(".mark")))], object))


def with_member(path):
    np.savez(path, w=np.ones(2))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("note.txt", "hello")


FAULTS = {
    "missing": ("x.pt", lambda p: None, "is missing"),
    "a folder": ("x.pt", lambda p: p.mkdir(), "is a folder without model.safetensors"),
    "another format": ("x.h5", lambda p: p.write_bytes(b"\x89HDF"), "is none of .safetensors, .pt"),
    "legacy torch": ("x.pt", legacy, "format from before 1.6"),
    "a pointer": ("x.bin", lambda p: p.write_text("version https://git-lfs"), "git lfs pull"),
    "text as torch": ("x.pt", lambda p: p.write_text("<html>"), "does not begin as a .pt file"),
    "text as npz": ("x.npz", lambda p: p.write_text("<html>"), "does not begin as a .npz file"),
    "pickle as npz": ("x.npz", lambda p: p.write_bytes(pickle.dumps([1])), "does not begin"),
    "text as safetensors": ("x.safetensors", lambda p: p.write_text("<html>"), "damaged"),
    "nothing": ("x.pt", lambda p: p.write_bytes(b""), "does not begin"),
    "no safetensors": ("x.safetensors", lambda p: p.write_bytes(b""), "damaged"),
    "a plain zip": ("x.pt", with_member, "holds no data.pkl"),
    "no arrays": ("x.npz", lambda p: np.savez(p), "holds no tensor"),
    "objects": ("x.npz", objects, "damaged"),
    "a stray member": ("x.npz", with_member, "'note.txt' is not an array"),
    "strings": ("x.npz", lambda p: np.savez(p, w=np.asarray(["a"])), "'w' is of type <U1"),
    "complex": ("x.npz", lambda p: np.savez(p, w=np.ones(2, complex)), "'w' is of type complex128"),
    "float8": ("x.safetensors", lambda p: float8(p), "float8_e4m3fn"),
}


def float8(path):
    header = b'{"w":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\x00\x00")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_one_line_with_its_remedy(tmp_path, fault):
    name, make, message = FAULTS[fault]
    path = tmp_path / name
    if path.suffix == ".safetensors":
        pytest.importorskip("safetensors")
    if fault == "a plain zip":
        make(tmp_path / "x.npz")
        os.rename(tmp_path / "x.npz", path)
    else:
        make(path)
    one_line(lambda: read(str(path)), message)
    assert not list(tmp_path.glob("*.mark"))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused_by_name(tmp_path, suffix, wrong):
    path = write(tmp_path / f"x{suffix}", {"good": np.ones(2), "bad": np.asarray([1, wrong])})
    with pytest.raises(UserError, match=f"x{suffix}: tensor 'bad' holds numbers .* not finite"):
        read(path)


def test_an_npz_that_would_unpack_to_too_much_is_refused_before_it_is(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", w=np.zeros(2**20))
    monkeypatch.setattr(weights, "LARGEST", 2**20)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", None)  # nothing is unpacked
    with pytest.raises(UserError, match=r"x\.npz unpacks to more than 1,048,576 bytes"):
        read(str(tmp_path / "x.npz"))


def test_without_the_package_safetensors_the_remedy_is_named(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"12345678")
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(UserError, match=r"pip install 'vfljax\[text\]'"):
        read(str(path))


@few_or_many
@pytest.mark.parametrize("inside", [False, True], ids=["file", "member"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_damaged_file_loads_or_is_one_line(tmp_path_factory, suffix, inside, examples):
    """Anywhere in the file, and inside its members: there checksums, which find most damage first, are
    made to fit."""
    folder = tmp_path_factory.mktemp("damaged")
    good, path = folder / f"good{suffix}", folder / f"x{suffix}"
    write(good, {"w": np.ones((2, 3), np.float32), "b": np.zeros(3)})
    members = {"": good.read_bytes()}
    zipped = inside and suffix != ".safetensors"
    if zipped:
        with zipfile.ZipFile(good) as archive:
            names = [n for n in archive.namelist() if not n.endswith("serialization_id")]
            members = {name: archive.read(name) for name in names}
    counts = collections.Counter()

    @settings(max_examples=examples, deadline=None)
    @given(
        name=st.sampled_from(list(members)),
        place=st.floats(0, 1, exclude_max=True),
        what=st.binary(min_size=int(inside), max_size=8),
        cut=st.just(False) if inside else st.booleans(),
    )
    def check(name, place, what, cut):
        content = members[name]
        at = int(place * len(content))
        changed = content[:at] + what + (b"" if cut else content[at + len(what) :])
        if zipped:
            with zipfile.ZipFile(path, "w") as archive:
                for member, data in {**members, name: changed}.items():
                    archive.writestr(member, data)
        else:
            path.write_bytes(changed)
        try:
            found = read(str(path))
        except UserError as error:
            assert len(str(error).splitlines()) == 1
            counts["refused"] += 1
        else:
            assert all(np.isfinite(v).all() for v in found.values())

    check()
    assert inside or counts["refused"] > examples // 10


TINY = Bert(3, vocabulary=11, hidden=8, layers=1, heads=2, intermediate=6, positions=5)


@pytest.mark.parametrize("suffix", FORMATS)
def test_load_places_the_file_s_weights_by_the_module_s_rule(tmp_path, suffix):
    variables = draw(TINY.init, jnp.ones((2, 4)))
    state = bert_tensors(vocabulary=11, positions=5, hidden=8, layers=1, intermediate=6)
    path = write(tmp_path / f"x{suffix}", {**state, "cls.predictions.bias": np.ones(11)})
    found, left_out = load(TINY, variables, path)
    assert left_out == ["cls.predictions.bias"]
    table = found["params"]["word_embeddings"]["embedding"]
    np.testing.assert_array_equal(table, np.float32(state["embeddings.word_embeddings.weight"]))
    assert jax.tree.structure(found) == jax.tree.structure(variables)


def test_load_names_the_file_and_the_networks_that_have_a_rule(tmp_path):
    path = write(tmp_path / "x.npz", {"w": np.ones(2)})
    variables = draw(TINY.init, jnp.ones((2, 4)))
    with pytest.raises(UserError, match=r"x\.npz: tensor 'embeddings\..*is missing"):
        load(TINY, variables, path)
    with pytest.raises(UserError, match=r"MLP has no rule for weights from a file .*: use .*Bert"):
        load(MLP((), 2), {}, path)
    assert set(weights.FROM_TORCH) >= {Bert}
