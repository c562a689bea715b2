# %% [markdown]
# # Reading a stored sweep
#
# Everything starts from `vfljax.store.load(dir)`; nothing is trained here. Opens as a notebook with
# jupytext (Colab, Jupyter, VS Code) and runs as a script:
#
#     python analysis/read_a_sweep.py runs/quickstart

# %%
import sys

import numpy as np

from vfljax import store
from vfljax.report import summary

sweep = store.load(sys.argv[1] if len(sys.argv) > 1 else "runs/quickstart")
print(
    f"{sweep.results.num_rows} settings of {sweep.header['settings']}, data {sweep.header['data']}"
)

# %% [markdown]
# ## Points: mean and 95 % interval over seeds

# %%
for point in summary.points(sweep):
    for federation, worst in point.worst.items():
        accuracy = point.accuracy[federation]
        print(
            f"{point.label:28} {federation:9} accuracy {accuracy}  worst {worst.attack} {worst.leak}"
        )

# %% [markdown]
# ## The direct attack by hand, from one setting's saved gradients
#
# Without model splitting each party receives (softmax - target) / B. The label is the most negative
# entry, as long as the true class carries more mass than the others.

# %%
splits = sweep.splits()
for row in sweep.results.to_pylist():
    if row["structure"] != "no_split" or row["seed"] != 0:
        continue
    gradients = sweep.setting(row["setting"]).exchange()["party0_gradients"][0]  # epoch 0, [N, C]
    labels = splits["labels"][splits["train"][row["seed"]]]
    first = np.mean(np.argmax(gradients < 0, axis=1) == labels)
    most = np.mean(np.argmin(gradients, axis=1) == labels)
    knobs = {k: v for k, v in row.items() if "." in k and v is not None}
    print(f"{row['arm']} {knobs}: first negative {first:.2f}, most negative {most:.2f}")
