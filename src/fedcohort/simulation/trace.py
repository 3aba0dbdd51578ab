"""Where `Trace` used to be; it is in `fedcohort.trace`, for other runs have one, too."""

from fedcohort.trace import Trace, versions

__all__ = ["Trace", "versions"]
