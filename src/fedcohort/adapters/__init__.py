"""Other frameworks: thin bridges over `fedcohort.Selector`, one file each.

Each imports its framework only when it is used. The frameworks choose and weigh in their own
ways; a bridge replaces these two and nothing else.
"""
