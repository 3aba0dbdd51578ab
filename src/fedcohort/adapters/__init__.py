"""Other frameworks as transports for `fedcohort.server._round`, one file each.

Each imports its framework only when it is used, and declares what it can carry; all else is
refused before the first round. A round itself is written in `fedcohort.server._round` alone.
"""

from fedcohort.adapters._loop import Loop

__all__ = ["Loop"]
