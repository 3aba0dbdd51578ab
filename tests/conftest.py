"""One declared set of hypothesis examples, so that a red test is red for everyone.

``HYPOTHESIS_PROFILE=fresh make test`` looks for new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("declared", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "declared"))
