"""What our runs show of the papers: ``python -m launch.reproduce`` has the commands, and needs a checkout.

    command             the command
    comparison_csv      stored comparisons with printed numbers
    evidence, claims    stored figures of attacks, and what they show of the papers' claims
    coverage, causes    how all 869 printed numbers compare; why a number differs, and what shows it
    paper_figures       figures in the papers' form
    scatter             our figures against a paper's printed numbers
    reproduction_page   renders the pages of analysis/results/papers from templates

``vfljax.papers`` has the printed numbers, and compares a sweep with a table.
"""

SPECTRAL = "spectral/signed"  # algorithm 1 of Sun et al., on the cut
