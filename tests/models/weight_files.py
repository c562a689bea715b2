"""Tensors of released networks, by the names and shapes that PyTorch gives them."""

import numpy as np


def resnet_tensors(out=3, stem=3):
    """PyTorch's tensors of ``resnet_test.TINY`` with random numbers, by torchvision's names and shapes.

    ``stem`` is the size of the first kernel.
    """
    shapes = {
        "conv1.weight": (4, 3, stem, stem),
        "layer1.0.conv1.weight": (4, 4, 3, 3),
        "layer1.0.conv2.weight": (4, 4, 3, 3),
        "layer2.0.conv1.weight": (8, 4, 3, 3),
        "layer2.0.conv2.weight": (8, 8, 3, 3),
        "layer2.0.downsample.0.weight": (8, 4, 1, 1),
        "fc.weight": (out, 8),
        "fc.bias": (out,),
    }
    norms = {"bn1": 4, "layer1.0.bn1": 4, "layer1.0.bn2": 4}
    norms |= {"layer2.0.bn1": 8, "layer2.0.bn2": 8, "layer2.0.downsample.1": 8}
    leaves = ("weight", "bias", "running_mean", "running_var")
    shapes |= {f"{name}.{leaf}": (size,) for name, size in norms.items() for leaf in leaves}
    return _drawn(shapes)


def bert_tensors(vocabulary, positions, hidden, layers, intermediate):
    """PyTorch's tensors of a BERT with random numbers, by the names and shapes of transformers."""
    linear = {"pooler.dense": (hidden, hidden)}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear[f"{layer}.attention.{part}"] = (hidden, hidden)
        linear[f"{layer}.intermediate.dense"] = (intermediate, hidden)
        linear[f"{layer}.output.dense"] = (hidden, intermediate)
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    rows = {"word": vocabulary, "position": positions, "token_type": 2}
    shapes = {f"embeddings.{k}_embeddings.weight": (n, hidden) for k, n in rows.items()}
    shapes |= {f"{name}.weight": shape for name, shape in linear.items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in linear.items()}
    shapes |= {f"{name}.{leaf}": (hidden,) for name in norms for leaf in ("weight", "bias")}
    return _drawn(shapes)


def _drawn(shapes):
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return {name: abs(x) if name.endswith("running_var") else x for name, x in values.items()}
