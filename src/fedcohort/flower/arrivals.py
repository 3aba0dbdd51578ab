"""Answers as they come, and when each of them was there."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

from flwr.app import Error, Message
from flwr.serverapp import Grid

from fedcohort.server.gate import one_line
from fedcohort.server.stragglers import StragglerRule, Wait

log = logging.getLogger("flwr.fedcohort")
UNREAD = 0
"""Flower's code for an error of no kind of its own."""
SOON, PULL = 0.02, 1.0
"""Seconds between two looks for answers, at least and at most."""
PRECISE = 0.05
"""How precisely times are measured, relative to themselves; Flower's own loop looks every 3 s."""


class Arrivals:
    """The answers to messages, which go out at once; to be looked through once.

    Answers are told in the order in which they come, so that each can be judged before it is known
    whether the next one is waited for: only good answers make a round end early. Times are those
    of the server's clock, from when all messages were handed over to when an answer was there.

    Parameters
    ----------
    grid
        What carries messages. One that answers while it delivers (``at_once``) says itself how
        long each took (``took``).
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
        self._grid, self._timeout, self._early = grid, timeout, bool(rule.withdraws)
        self._enough, self._limit = rule.enough(len(messages)), min(timeout, rule.deadline)
        self._waiting: dict[str, Message] = {}
        self._read = self._unread = 0
        self._began = time.monotonic()
        self._ready: list[Message] = []
        if messages and getattr(grid, "at_once", False):
            self._ready = self._delivered(messages)
        elif messages:
            pushed = grid.push_messages(messages)
            names = [name for name in pushed if name]  # None: Flower did not take it
            sent = {message.metadata.message_id: message for message in messages}
            self._waiting = {name: sent[name] for name in names if name in sent}

    def __iter__(self) -> Iterator[Message]:
        return self._at_once() if self._ready or not self._waiting else self._as_they_come()

    @property
    def _done(self) -> bool:
        return self._early and self.counted >= self._enough

    # -- a grid that answers while it delivers -----------------------------------------------

    def _delivered(self, messages: Sequence[Message]) -> list[Message]:
        try:
            return list(self._grid.send_and_receive(messages, timeout=self._timeout))
        except Exception as error:
            sent = {message.metadata.message_id: message for message in messages}
            if not all(sent):  # they were not even sent
                raise
            self._waiting = sent
            found = self._one_by_one(error)
            self._waiting = {}
            return found

    def _at_once(self) -> Iterator[Message]:
        took = getattr(self._grid, "took", {})
        if self._early:  # as if all had begun together
            self._ready.sort(key=lambda reply: took.get(answered(reply), 0.0))
        for reply in self._ready:
            name = answered(reply)
            seconds = took.get(name, 0.0)
            if self._early and seconds > self._limit:
                self.ended = self._limit
                return
            if self._done:
                return
            self.seconds.setdefault(name, seconds)
            yield reply
            if self._done:
                self.ended = seconds

    # -- a network ---------------------------------------------------------------------------

    def _as_they_come(self) -> Iterator[Message]:
        while True:
            came = self._pulled()
            now = time.monotonic() - self._began
            for reply in came:
                self._waiting.pop(answered(reply), None)
                self.seconds.setdefault(answered(reply), now)
                yield reply
                if self._done:
                    break
            if not self._waiting or self._done or now >= self._limit:
                self.ended = now if self._waiting else None
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


def answered(reply: Message) -> str:
    """The name of the message that a reply answers; "" where not even that can be read."""
    try:
        return str(reply.metadata.reply_to_message_id)
    except Exception:
        return ""
