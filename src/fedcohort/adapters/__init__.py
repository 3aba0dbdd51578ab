"""Other frameworks as transports for `fedcohort.server._round`, one file each.

Each imports its framework only when it is used, and declares what it can carry; all else is
refused before the first round. What a round consists of is written in `rounds` alone.
"""
