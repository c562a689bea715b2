r"""GAFM's Table D.6: leak AUC over training AUC by Delta, on all rows and on a tenth of them.

    python -m launch.sweep --config=configs/papers/gafm_d6.py:DATASET --workdir=runs/gafm_d6_DATASET \
        --config.data.dir=DIR

DATASET is one of

    spambase, spambase-subset  50 runs, a minute on 2 cores; 25 runs on 322 training rows
    imdb, imdb-subset          50 runs, 50 minutes on 2 cores; 25 runs on 2,500 training rows
    criteo, criteo-subset      50 runs, an hour and a quarter; 25 runs on 8,000 training rows
    isic, isic-subset          50 runs, 100 hours, or a GPU; 25 runs on 2,650 training rows

or one of those with a rule of ``configs/papers/gafm.py`` (criteo-reduced, criteo-reduced-subset), which
also describes what DIR holds. All rows are trained on by 10 seeds; a tenth by 5, as published. Which tenth
it is, each seed draws anew.

The ratio is no column of the sweep. ``analysis.reproduction.gafm_gradients.ratios`` averages it
over runs and over the norm, mean and median attacks, with the oriented training AUC: without
orientation runs that learned the labels inverted make it explode. ``vfljax.defenses.gafm.select_delta``
chooses the Delta of the least mean; ``configs/defenses_spambase.py`` shows how.
"""

from configs.papers import gafm

DELTA = (0.05, 0.1, 0.2, 0.3, 0.5)
SUBSET = "-subset"
ONE_BATCH = {"spambase": 322}  # fewer training rows than a batch of 1,028: one batch of all of them


def get_config(variant=""):
    subset = variant.endswith(SUBSET)
    dataset, rule = gafm.named(variant.removesuffix(SUBSET), ("spambase", "imdb", "criteo", "isic"))
    grid = {"gafm": gafm.gafm(dataset, delta=DELTA)}
    few = {"batch_size": ONE_BATCH[dataset]} if subset and dataset in ONE_BATCH else {}
    return gafm.config(
        "D.6",
        dataset,
        rule,
        grid,
        share=0.1 if subset else 1.0,
        seeds=5 if subset else 10,
        suffix="_subset" if subset else "",
        training=few,
        median="global_median",
        setting={"sampling_ratio": 0.1 if subset else 1.0},
    )
