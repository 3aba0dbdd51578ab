"""What no paper prints: claims of our own, judged in the same way."""

from __future__ import annotations

PAPER = "beyond the papers"
