"""Arms and claims of the figures: both algorithms as printed, and corrected beside them."""

from __future__ import annotations

from collections.abc import Callable

from fedcohort_papers.reproduction import Claim, Judge

MD, ORACLE = "MD", "target (oracle)"
SCHEMES = {"Algorithm 1": "clustered-size", "Algorithm 2": "clustered-similarity"}
CORRECTED = ", corrected"
KINDS = {"printed": "", "sound": CORRECTED}
"""By kind of claim: what follows the name of an algorithm in the label of its arm."""
READINGS = {
    "ties": "order of clients of equal size in Algorithm 1: shuffled once per run here; by index, "
    "or as an unstable sort leaves them, are possible. With one class per client and clients "
    "stored class by class, the corrected Algorithm 1 by index is target sampling",
    "rows": "printed distributions do not sum to 1: a client is drawn in proportion here; drawing "
    "nobody with what is missing is possible where a sum is below 1",
    "unseen": "Algorithm 2 before any update is known, when all clients are alike: the corrected "
    "Algorithm 1 here; any other order of merging them is possible",
    "faster": "'learns faster': the mean over all evaluations here; the value at the end, or the "
    "rounds to a level, are possible",
    "pixels": "pixel scale: [0, 1] here; standardized or 0 to 255 are possible",
}
"""What the paper leaves open, by a word."""


def arms(m: int, more: str = "") -> dict[str, str]:
    """MD, and both algorithms as printed and corrected."""
    found = {MD: f"md:m={m}{more}"}
    for label, name in SCHEMES.items():
        found[label] = f"{name}:m={m},version=printed{more}"
        found[label + CORRECTED] = f"{name}:m={m}{more}"
    return found


def of_both(statement: str, printed: str, judge: Callable[[str], Judge]) -> tuple[Claim, Claim]:
    """A claim about the algorithms as printed, and the same about the corrected ones.

    ``judge`` gives the criterion for what follows the name of an algorithm in its label.
    """
    one, other = (
        Claim(f"{'corrected: ' if suffix else ''}{statement}", printed, judge(suffix), kind=kind)
        for kind, suffix in KINDS.items()
    )
    return one, other
