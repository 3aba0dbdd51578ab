"""An app whose strategy reads replies and stops early."""
