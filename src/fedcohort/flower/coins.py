"""A client's coins: tossed once a round, by the client.

Which samples take part in a round hangs on random bits. All that a client does in a round must use
the same ones: its training, the number of samples that its update is multiplied by, what a scheme
wants to know of the update, and all of it again where an answer was lost. So the coins of a round
are tossed when its first message arrives, kept in Flower's context, and put into every message.

They come from the operating system. A server that knew them, or chose them, would read the exact
size of a client off a few updates that are zero; keys in a message are therefore refused, unless
the client is simulated and has no secrets. For the same reason a round has one data rate.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from flwr.app import ConfigRecord, Context, Message

from fedcohort._internal.errors import PolicyRefused
from fedcohort.flower import wire
from fedcohort.privacy import ClientPolicy

COIN_BYTES = 16


def toss(message: Message, context: Context, policy: ClientPolicy, simulated: bool) -> None:
    """Put the coins of its round into a message; refuse what the policy does."""
    config = message.content.get(wire.CONFIG)
    if not isinstance(config, ConfigRecord):
        return  # nothing is asked that needs coins
    if not simulated and any(name.startswith(wire.STREAM) for name in config):
        raise PolicyRefused(
            "random keys",
            "keys of the server",
            "of its own only (a simulated client says client_app(simulated=True))",
        )
    share, round = _share(config, policy), _round(config)
    kept = context.state.get(wire.COINS)
    if not isinstance(kept, ConfigRecord) or kept[wire.ROUND] != round:
        kept = ConfigRecord({wire.ROUND: round or "", wire.COINS: secrets.token_bytes(COIN_BYTES)})
    if share is not None:
        if kept.get(wire.DATA_RATE, share) != share:
            known = f"{kept[wire.DATA_RATE]!r} in this round, as it was told first"
            raise PolicyRefused("a data rate", share, known)
        kept[wire.DATA_RATE] = share
    if round is not None:
        context.state[wire.COINS] = kept
    config[wire.COINS] = kept[wire.COINS]
    config.pop(wire.USED, None)


def _share(config: Mapping[str, Any], policy: ClientPolicy) -> float | None:
    """The share of the samples that is to take part, if the policy agrees; None where all do."""
    if wire.DATA_RATE not in config and not config.get(wire.PER_SAMPLE):
        return None
    rate = float(config.get(wire.DATA_RATE, 1.0))
    policy.check_share(rate, bool(config.get(wire.PER_SAMPLE)))
    return rate


def _round(config: Mapping[str, Any]) -> str | None:
    """The name of the round; a message that names none has coins of its own."""
    if wire.ROUND not in config:
        return None
    return f"{int(config[wire.ROUND])} of {config.get(wire.TASK)}"
