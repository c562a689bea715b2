"""What a label may be: a class (``classification``) or a number (``regression``). ``core`` has the record.

A data set of classes has ``num_classes`` = C >= 2. One whose labels are numbers has ``num_classes`` = 1, which
is the width of outputs and scores, and float labels. ``of`` finds the task by it.
"""

from vfljax.tasks.classification import CLASSIFICATION
from vfljax.tasks.core import Read, Task, Utility, table
from vfljax.tasks.regression import REGRESSION

TABLE = table(CLASSIFICATION, REGRESSION)


def of(num_classes: int) -> Task:
    """Returns the task of data with so many classes; 1 stands for labels that are numbers."""
    return REGRESSION if num_classes == 1 else CLASSIFICATION


__all__ = ["CLASSIFICATION", "REGRESSION", "TABLE", "Read", "Task", "Utility", "of"]
