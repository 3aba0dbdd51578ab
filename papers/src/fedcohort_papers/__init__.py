"""Figures and tables of papers on client selection, run and judged: `fedcohort reproduce`.

`fedcohort_papers.recipes` has the papers, `fedcohort_papers.reproduction` what runs them.
"""

__version__ = "0.1.0"
