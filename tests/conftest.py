"""The hypothesis examples: 50 declared ones, so that a red test is red for everyone.

``HYPOTHESIS_PROFILE=fresh make test`` looks for new ones, ``make nightly`` for many.
"""

from __future__ import annotations

import os

from hypothesis import settings

from helpers.examples import USUAL

settings.register_profile("declared", max_examples=USUAL, derandomize=True, deadline=None)
settings.register_profile("fresh", max_examples=USUAL, deadline=None, print_blob=True)
settings.register_profile("many", max_examples=20 * USUAL, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "declared"))
