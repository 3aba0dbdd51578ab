"""Published schemes, one family per file; discovered, never listed.

A file here that defines a `Scheme` with a ``name`` is found by the command line, the
comparison, the checks and the report. Other packages add theirs through the entry point group
``fedcohort.schemes``. What cannot be loaded is left out, with a warning.
"""

from fedcohort.selection._scheme import (
    SCHEMES,
    SchemeClass,
    as_scheme,
    find,
    installed,
    scheme,
    schemes,
)

__all__ = ["SCHEMES", "SchemeClass", "as_scheme", "find", "installed", "scheme", "schemes"]
