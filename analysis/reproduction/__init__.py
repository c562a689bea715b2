"""What our runs show of the papers: ``python -m launch.reproduce`` has the commands, and needs a checkout.

command, running    the command; a table, run and compared
papers              the printed numbers
our_figures         finds the figures of a sweep that are compared with the numbers of a table
agreement           verdicts on single numbers
comparisons         a number with our figure, and tables of them
gafm_gradients      the two parts of GAFM's gradients, which two of its tables print
comparison_csv      stored comparisons with printed numbers
evidence, claims    stored figures of attacks, and what they show of the papers' claims
coverage, causes    how all 869 printed numbers compare; why a number differs, and what shows it
paper_figures       figures in the papers' form
scatter             our figures against a paper's printed numbers
reproduction_page   renders the pages of analysis/results/papers from templates
"""

SPECTRAL = "spectral/signed"  # algorithm 1 of Sun et al., on the cut
