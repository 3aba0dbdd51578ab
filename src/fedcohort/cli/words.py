"""Which words of a command were typed, and which stand there by default."""

from __future__ import annotations

import typer


def typed(context: typer.Context) -> dict[str, str]:
    """The options that were typed, by parameter, each as it is spelt at length."""
    out = {}
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            out[name] = max(option.opts, key=len)
    return out
