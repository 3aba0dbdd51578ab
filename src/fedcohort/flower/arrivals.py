"""Answers as they come, and when each of them was there."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

from flwr.app import Error, Message
from flwr.serverapp import Grid

from fedcohort.server._reply_validation import one_line
from fedcohort.server._stragglers import StragglerRule, Wait

log = logging.getLogger("flwr.fedcohort")
SUPERLINK = 1
"""Flower's node id of the SuperLink, which sends errors for nodes that are gone."""
UNREAD = 0
"""Flower's code for an error of no kind of its own."""
SOON, PULL = 0.02, 1.0
"""Seconds between two looks for answers, at least and at most."""
PRECISE = 0.05
"""How precisely times are measured, relative to themselves; Flower's own loop looks every 3 s."""


class Arrivals:
    """The replies to messages, which go out at once.

    Replies come one after another, so that each can be judged before it is clear whether the
    next one is needed: only good replies end a round early. Looking through them a second time
    gives the same replies. Times are those of the server's clock, from when all messages were
    handed over to when a reply was there.

    Parameters
    ----------
    grid
        The transport of messages. A grid whose clients reply while it delivers (``at_once``)
        gives the seconds of each reply itself (``took``).
    messages
        What goes out.
    timeout
        Seconds to wait at most.
    rule
        When to stop waiting before; by default when all have answered.
    """

    def __init__(
        self,
        grid: Grid,
        messages: Sequence[Message],
        timeout: float,
        rule: StragglerRule | None = None,
    ) -> None:
        rule = Wait() if rule is None else rule
        self.counted = 0
        """How many of the answers so far are good; whoever looks at them says so."""
        self.seconds: dict[str, float] = {}
        """When the answer to a message was there, by the name of the message."""
        self.ended: float | None = None
        """When nobody was waited for any longer though some were missing; None: nobody was."""
        self.early = bool(rule.withdraws)
        """Whether the round may end before all have answered."""
        self._grid = grid
        self._enough, self._limit = rule.enough(len(messages)), min(timeout, rule.deadline)
        self._waiting: dict[str, Message] = {}
        self._read = self._unread = 0
        self._began = time.monotonic()
        if messages:
            pushed = grid.push_messages(messages)
            names = [name for name in pushed if name]  # None: Flower did not take it
            sent = {message.metadata.message_id: message for message in messages}
            self._waiting = {name: sent[name] for name in names if name in sent}
        self._came: list[Message] = []
        self._coming = self._as_they_come()

    def __iter__(self) -> Iterator[Message]:
        yield from list(self._came)
        for reply in self._coming:
            self._came.append(reply)
            yield reply

    @property
    def _done(self) -> bool:
        return self.early and self.counted >= self._enough

    def _as_they_come(self) -> Iterator[Message]:
        at_once = getattr(self._grid, "at_once", False)
        took = getattr(self._grid, "took", {}) if at_once else {}
        while self._waiting:
            replies = self._pulled()
            now = time.monotonic() - self._began
            came = [(took.get(answered(reply), now), reply) for reply in replies]
            if at_once and self.early:  # as if all had begun together
                came.sort(key=lambda pair: pair[0])
            for seconds, reply in came:
                if at_once and self.early and seconds > self._limit:
                    now = seconds
                    break
                name = answered(reply)
                asked = self._waiting.get(name)
                if asked is not None and is_from(reply, asked.metadata.dst_node_id):
                    del self._waiting[name]
                    self.seconds[name] = seconds
                yield reply
                if self._done:
                    now = seconds
                    break
            if self._done or now >= self._limit:
                self.ended = min(now, self._limit) if self._waiting else None
                return
            if at_once:
                return
            pause = min(max(SOON, PRECISE * now), PULL)
            time.sleep(max(0.0, min(pause, self._limit - now)))

    def _pulled(self) -> list[Message]:
        """The answers that are there.

        Flower reads all answers that are there at once, and fails on all where it fails on one of
        them. Then they are looked for one by one, and what cannot be read is lost alone.
        """
        try:
            came = list(self._grid.pull_messages(list(self._waiting)))
        except Exception as error:
            return self._one_by_one(error)
        self._read += len(came)
        return came

    def _one_by_one(self, error: Exception) -> list[Message]:
        """The answers that can be read, and an error for each that cannot.

        Where nothing can be read at all the trouble is not with a client, and the error goes on.
        """
        log.warning("\t├──> answers are read one by one: %s", one_line(repr(error)))
        out: list[Message] = []
        for name, message in list(self._waiting.items()):
            try:
                came = list(self._grid.pull_messages([name]))
                self._read += len(came)
            except Exception as own:
                came = [Message(Error(UNREAD, f"(unreadable) {own!r}"), reply_to=message)]
                self._unread += 1
            out += came
        if self._unread == len(self._waiting) + len(self.seconds) and not self._read:
            raise error
        return out


def is_from(reply: Message, node: object) -> bool:
    """Return whether a node sent a reply; of an error the SuperLink may be the sender, too."""
    try:
        sender = reply.metadata.src_node_id
        return sender == node or (sender == SUPERLINK and reply.has_error())
    except Exception:
        return False


def answered(reply: Message) -> str:
    """The name of the message that a reply answers; "" where not even that can be read."""
    try:
        return str(reply.metadata.reply_to_message_id)
    except Exception:
        return ""
