"""What a converter yields, joined."""

from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets.core import Ragged


class Whole(NamedTuple):
    features: Any  # an array, or a list of token ids for each row
    labels: np.ndarray
    test: Any
    about: dict


def whole(conversion):
    """The rows of all blocks."""
    features, labels, test, _ = zip(*conversion.blocks, strict=True)
    if isinstance(features[0], Ragged):
        features = [
            ids.tolist()
            for block in features
            for ids in np.split(block.values, block.offsets[1:-1])
        ]
    else:
        features = np.concatenate(features)
    test = None if test[0] is None else np.concatenate(test)
    return Whole(features, np.concatenate(labels), test, conversion.about)
