"""Facts and figures -> the page, the terminal, CSV files, and trackers of experiments.

(Not `write`: that is the function which writes the page.)
"""
