"""Reads, judges and shows a stored sweep. Nothing is trained or attacked here.

``frames`` reads a stored sweep into the rows of attacks and those of trials. ``verdict_frame`` turns them into
one frame of verdicts, by the rule in ``verdicts`` with the limits of ``limits`` and the costs of ``costs``, to
which ``verdict_columns`` adds the labels that ``points`` gives configurations, and who knows their defenses.
``sweep_answers`` makes of a folder a ``judged_sweep``, with the ``decision`` on each panel, at the seeds that
``looks`` says, by what the folders of further seeds have (``fresh``) and by which ``families`` of attacks
apply. All else is made of these: ``tables``, ``first_screen`` (with ``ruler``, ``short_rows`` and
``next_command``), the figures, and ``page`` and ``terminal``, which put them together. If a verdict looks
wrong, begin with the table in ``verdicts``. A new table is an entry of ``tables.sections``.
"""

import contextlib as _contextlib
import os as _os
import sys as _sys

if "matplotlib" not in _sys.modules and (_backend := _os.environ.pop("MPLBACKEND", "")):
    # Matplotlib's import would fail if the variable names a backend that is not installed, as that which a
    # Jupyter kernel passes on to commands may not be. No figure of a report needs a backend.
    import matplotlib as _matplotlib

    _os.environ["MPLBACKEND"] = _backend
    with _contextlib.suppress(ValueError):
        _matplotlib.rcParams["backend"] = _backend
