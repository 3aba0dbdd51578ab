"""An app with clients that sleep."""
