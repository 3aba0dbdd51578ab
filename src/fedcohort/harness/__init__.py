"""A scheme without any training: scripted clients, and every path through a draw.

Theory and checks stand on it. What a scheme does here, its real `select` does: nothing of it is
written again.
"""

from fedcohort.core.paths import every_path
from fedcohort.harness.scripted import ScriptedClient, scripted
from fedcohort.harness.trial import Trial

__all__ = ["ScriptedClient", "Trial", "every_path", "scripted"]
