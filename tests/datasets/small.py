"""Small sets in the published formats of images."""

import io
import tarfile
import zipfile

import numpy as np
from PIL import Image


def picture(seed, height=32, width=32):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def encoded(array, form="PNG"):
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, form)
    return stream.getvalue()


def write(folder, files):
    """Writes {path: bytes} below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(folder)


def tar(files, mode="w:gz"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def class_folders(splits, names, images=1):
    """{split/class/number.png: bytes}; image k of class y of split s is picture(1000 s + 100 k + y)."""
    return {
        f"{split}/{name}/{k:04}.png": encoded(picture(1000 * s + 100 * k + y))
        for s, split in enumerate(splits)
        for y, name in enumerate(names)
        for k in range(images)
    }


def binary_rows(seed, rows, labels, classes):
    """Rows of the official binary version; returns (bytes, pixels [R, 32, 32, 3], labels [R, L])."""
    rng = np.random.default_rng(seed)
    y = np.stack([np.arange(rows) % c for c in classes[:labels]], 1).astype(np.uint8)
    x = rng.integers(0, 256, (rows, 3, 32, 32)).astype(np.uint8)
    content = b"".join(y[i].tobytes() + x[i].tobytes() for i in range(rows))
    return content, x.transpose(0, 2, 3, 1), y


def binary10(prefix="cifar-10-batches-bin/", rows=(12, 4, 2, 1, 3, 10)):
    """{path: bytes} of five training batches and the test batch, and their pixels and labels."""
    files, xs, ys = {}, [], []
    names = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
    for seed, (name, many) in enumerate(zip(names, rows)):
        files[prefix + name], x, y = binary_rows(seed, many, 1, (10,))
        xs.append(x)
        ys.append(y[:, 0])
    return files, np.concatenate(xs), np.concatenate(ys)


def binary100(prefix="cifar-100-binary/", rows=110):
    files, xs, ys = {}, [], []
    for seed, name in enumerate(("train.bin", "test.bin")):
        files[prefix + name], x, y = binary_rows(seed, rows, 2, (20, 100))
        xs.append(x)
        ys.append(y)
    return files, np.concatenate(xs), np.concatenate(ys)


def archived(**arrays):
    """The bytes of a .npz; arrays that are None are left out."""
    stream = io.BytesIO()
    np.savez(stream, **{name: array for name, array in arrays.items() if array is not None})
    return stream.getvalue()


# BHI: patient 10253 has 3 patches of class 0 and 2 of class 1, patient 9 has 2 and 1
PATCHES = {
    f"{patient}/{label}/{patient}_idx5_x{50 * k + 51}_y1001_class{label}.png": encoded(
        picture(10 * p + k, 50, 50)
    )
    for p, (patient, label, many) in enumerate(
        [("10253", 0, 3), ("10253", 1, 2), ("9", 0, 2), ("9", 1, 1)]
    )
    for k in range(many)
}
SIIM = (
    b"image_name,patient_id,sex,benign_malignant,target\r\n"
    b"ISIC_1,IP_7,male,benign,0\r\n"
    b"ISIC_2,IP_7,male,malignant,1\r\n"
    b"ISIC_3,IP_2,female,benign,0\r\n"
    b"ISIC_4,,female,benign,0\r\n"
)
HAM = (
    b"lesion_id,image_id,dx,dx_type,age\n"
    b"HAM_9,ISIC_4,bkl,histo,80.0\n"
    b"HAM_9,ISIC_3,bkl,histo,80.0\n"
    b"HAM_1,ISIC_2,mel,histo,\n"
    b"HAM_2,ISIC_1,nv,histo,45.0\n"
)
SHAPES = {1: (96, 64), 2: (64, 64), 3: (20, 30), 4: (128, 128), 5: (8, 8)}


def photos(folder="", numbers=(1, 2, 3, 4)):
    """Lesions of the tables ``SIIM`` and ``HAM``."""
    return {f"{folder}ISIC_{n}.png": encoded(picture(n, *SHAPES[n])) for n in numbers}


def lesions():
    x = np.stack([picture(n, 16, 16) for n in range(4)])
    return archived(x=x, y=np.array([0, 1, 0, 1], np.uint8), lesion_id=np.array(list("baac")))


def patches(**changes):
    arrays = {
        "x": np.stack([picture(i, 50, 50) for i in range(6)]),
        "y": np.array([0, 0, 1, 1, 0, 1], np.uint8),
        "patient": np.array([7, 7, 7, 7, 3, 3], np.int32),
        "name": np.array(list("fedcba")),
    }
    return archived(**{**arrays, **changes})
