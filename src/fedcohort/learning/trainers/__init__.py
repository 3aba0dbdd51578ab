"""How clients train: fast, for a whole cohort at once, and plainly, as its slow twin."""
