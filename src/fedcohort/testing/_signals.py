"""Checks of queries and replies: declared signals only, and no reply that ends a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedcohort._internal.errors import CannotAsk, CheckFailed, FedcohortError, UndeclaredSignal
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Answer, Ask, converse
from fedcohort.selection._scheme import RoundContext, Scheme
from fedcohort.selection._scripted import SETTLED, ScriptedClient, Trial
from fedcohort.server._selector import Selector
from fedcohort.testing._claims import NotApplicable
from fedcohort.testing._conduct import check_cohort

SPOILT = (
    ("every other answer is NaN", np.nan, 2),
    ("all answers are NaN", np.nan, 1),
    ("every other answer is infinite", np.inf, 2),
    ("all answers are infinite", np.inf, 1),
    ("all answers are minus infinity", -np.inf, 1),
)
"""(what happens, the answer, of every so many clients asked)."""


def check_signals(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Only declared signals are asked for and read, and a scheme that asks says so.

    Answers of scripted clients are as the signals declare, and looked for where they say.
    """
    trial = Trial.of(scheme, federation, answer)
    try:
        state = trial.start()
        cohort = trial.select(state)
    except UndeclaredSignal as error:
        raise CheckFailed(str(error)) from None
    try:
        trial.observe(state, cohort)
    except KeyError as error:
        raise CheckFailed(
            f"{scheme} reads the reply {error} without listing it in `listens`."
        ) from (None)
    talks: dict[str, Callable[[], Any]] = {
        "start": lambda: scheme.start(federation, stream(0, "start")),
        "select": lambda: scheme.select(state, federation, RoundContext(), stream(0, "select")),
    }
    heard = [Ask(signal, cohort.clients[:1]) for signal in scheme.listens]
    for where, talk in talks.items():
        asked = _asked(talk(), trial)
        heard += asked
        if asked:
            _refused(UndeclaredSignal, talk(), trial.answer, frozenset(), f"{scheme}.{where}")
            _refused(CannotAsk, talk(), None, scheme.asks, f"{scheme}.{where}")
    if answer is None:  # whoever answers by a function of their own may do so in any form
        for ask in heard:
            _check_form(str(scheme), ask, federation)


def check_answers(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """A client that is silent (NaN, as transports fill in) or overflows is no reason to crash.

    With some or all answers like that, a scheme chooses a cohort or says in one sentence why
    it cannot.
    """
    if not scheme.asks:
        raise NotApplicable("it asks nobody")
    trial = Trial.of(scheme, federation, answer)
    for what, value, step in SPOILT:

        def spoilt(ask: Ask, value: float = value, step: int = step) -> Array:
            rows = np.array(trial.answer(ask), dtype=np.float64)
            rows[::step] = value
            return rows

        selector = Selector(scheme, federation, seed=1, ask=spoilt)
        try:
            for round in range(SETTLED):
                cohort = selector.select()
                check_cohort(trial, round, cohort, None)
                selector.observe(trial.replies(cohort))
        except CheckFailed as error:
            raise CheckFailed(f"Where {what}: {error}") from None
        except FedcohortError:
            continue  # refused in one sentence, which is fine
        except Exception as error:
            kind = type(error).__name__
            raise CheckFailed(
                f"{scheme}: where {what}, select() ends in {kind}: {error}"
            ) from error


def _asked(talk: Any, trial: Trial) -> list[Ask]:
    heard: list[Ask] = []
    converse(talk, trial.answer, trial.scheme.asks, lambda ask, rows: heard.append(ask))
    return heard


class _Watched(ScriptedClient):
    """A scripted client that notes which quantities a signal looks at."""

    def __init__(self, federation: Federation, number: int) -> None:
        sizes = federation.sizes
        super().__init__(number, 1 if sizes is None else int(sizes[number]))
        self.seen: set[str] = set()
        self._inside = False  # what a quantity is made of is no matter of the signal

    def quantity(self, name: str, *settings: Any) -> Any:
        if self._inside:
            return super().quantity(name, *settings)
        self.seen.add(name)
        self._inside = True
        try:
            return super().quantity(name, *settings)
        finally:
            self._inside = False


def _check_form(who: str, ask: Ask, federation: Federation) -> None:
    """The answer to a question is as its signal declares, made of what it says it needs."""
    signal = ask.signal
    for number in ask.clients[:3].tolist():
        client = _Watched(federation, number)
        row = np.asarray(client.says(signal, ask.settings))
        if not signal.fits(row, {**client.lengths, **ask.settings}):
            raise CheckFailed(
                f"{who}: the signal '{signal.name}' declares answers of shape {signal.shape}, from "
                f"{signal.lowest:g} to {signal.highest:g}{', whole' * signal.whole}; a client "
                f"answered {np.array2string(row, threshold=6)} of shape {row.shape}."
            )
        more = sorted(client.seen - set(signal.needs)) if signal.needs is not None else []
        if more:
            raise CheckFailed(
                f"{who}: the signal '{signal.name}' looks at '{more[0]}', which is not among its "
                f"needs {sorted(signal.needs or ())}."
            )


def _refused(
    error: type[Exception], talk: Any, answer: Answer | None, declared: Any, who: str
) -> None:
    try:
        converse(talk, answer, declared)
    except error:
        return
    raise CheckFailed(f"{who} goes on although {error.__name__} should have stopped it.")
