"""LeakBench's launch entries: every defense of the table at the strengths of its row, and two without one.

    python -m analysis.leakbench.launch_entries

An entry that is there keeps its scores and its breaks; its method, title and claims are written again.
"""

import json
import pathlib
from typing import Any

import msgspec

from analysis.leakbench import entry_files
from analysis.leakbench.boards import UNDEFENDED
from analysis.leakbench.entry_files import Entry
from vfljax import defenses

FOLDER = pathlib.Path("analysis/leakbench/entries")
FU = "Fu et al., USENIX Security 2022"
# title, venue, and the claims of ``analysis/reproduction/claims.json`` that are of the method
ABOUT = {
    "kdk": ("KDk", "Arazzi, Nicolazzo, Nocera 2024", ("passive", "active", "direct", "accuracy")),
    "label_dp": ("Label DP", "Ghazi et al., NeurIPS 2021", ()),
    "grad_perturb": ("GradPerturb", "Yang et al. 2022", ()),
    "class_splitting": ("Class splitting", "PSLF and SecDT, from released code", ()),
    "alibi": ("ALIBI", "Malek et al., NeurIPS 2021", ()),
    "vlp": ("VLP", "Zhao et al., ICLR 2025", ()),
    "cae": ("CAE", "Zou et al., IEEE Transactions on Big Data 2022", ()),
    "dcor": ("dCor", "Sun et al. 2022", ("dcor_leak", "dcor_auc")),
    "pe_loss": ("PELoss", "Zheng et al. 2024", ()),
    "adversary": ("Adversary", "vfljax, after Ganin and Lempitsky, ICML 2015", ()),
    "mid": ("MID", "Zou, Liu, Zhang 2023", ()),
    "fedpass": ("FedPass", "Gu et al., IJCAI 2023", ()),
    "p3eft": ("P3EFT", "Zmushko et al. 2024", ()),
    "gafm": ("GAFM", "Han, Guan 2023", ("undefended", "similar", "above_marvell_2")),
    "dpzv": ("DPZV", "Zhang et al. 2025", ()),
    "noise": ("Noisy gradients", FU, ()),
    "compression": ("Gradient compression", FU, ()),
    "discrete_sgd": ("DiscreteSGD", FU, ()),
    "ppdl": ("PPDL", f"Shokri, Shmatikov, CCS 2015; {FU}", ()),
    "max_norm": ("MaxNorm", "Li et al., ICLR 2022", ()),
    "marvell": ("Marvell", "Li et al., ICLR 2022", ()),
    "proj_pert": ("ProjPert", "IEEE TKDE 2024, from released code", ()),
}
LINKS = {"dpzv": "https://arxiv.org/abs/2502.20565"}
EARLIER_CUT = Entry(
    name="earlier_cut",
    title="Earlier cut",
    venue="Liu et al. 2026, from the abstract",
    link="https://arxiv.org/abs/2603.18680",
    plugin="earlier_cut.py",
    method={"earlier_cut:earlier": {"layers": [1, 2]}},
    reported=(
        {
            "claim": "shifting cut layers forward to increase the proportion of top model layers in the "
            "entire model not only improves resistance to LIAs but also enhances other defenses",
            "source": "abstract",
        },
    ),
)


def main() -> None:
    """Write the entries."""
    claims = json.loads(pathlib.Path("analysis/reproduction/claims.json").read_text())
    of_method = {"kdk": "kdk", "dcor": "sun", "gafm": "gafm"}
    every = [Entry(name=UNDEFENDED, title="Undefended", method={}), EARLIER_CUT]
    for name, (title, venue, ids) in ABOUT.items():
        row = defenses.TABLE[name]
        knobs: dict[str, Any] = {knob: row.example[knob] for knob in row.required}
        if row.strengths is not None:
            knobs |= {**row.strengths.fixed, row.strengths.knob: [*row.strengths.values]}
        reported = tuple(
            {"claim": claim["quote"], "source": claim["place"]}
            for claim in claims
            if claim["paper"] == of_method.get(name) and claim["id"] in ids
        )
        every.append(
            Entry(
                name=name,
                title=title,
                venue=venue,
                link=LINKS.get(name, ""),
                method={name: knobs},
                reported=reported,
            )
        )
    for entry in every:
        path = FOLDER / f"{entry.name}.json"
        if path.exists():
            stored = entry_files.read(path)
            entry = msgspec.structs.replace(entry, results=stored.results, broken=stored.broken)
        entry_files.write(path, entry)
        print(f"written: {path}")
    missing = {n for n, row in defenses.TABLE.items() if row.origin is None} - {*ABOUT}
    assert not missing, f"defenses without an entry: {missing}"


if __name__ == "__main__":
    main()
