"""The client's side of the conversation about its size.

>>> import tempfile
>>> from fedcohort.privacy import ClientPolicy, PrivateSize, SizeReport, SizeRequest
>>> client = PrivateSize(tempfile.mkdtemp(), ClientPolicy(largest_epsilon=3.0))
>>> request = SizeRequest("news-2024", SizeReport(threshold=300, epsilon=3.0))
>>> first = client.answer(40, request)
>>> {client.answer(40, request) for _ in range(10)} == {first}   # asked again: the same answer
True
>>> client.spent                                                 # and nothing more is spent
3.0
>>> client.answer(40, SizeRequest("news-2025", request.report))
Traceback (most recent call last):
fedcohort.core.errors.BudgetExceeded: The privacy budget is exhausted: epsilon 3.0 is spent, ...
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import is_whole
from fedcohort.privacy.folder import Lost, PrivateFolder
from fedcohort.privacy.memo import counts_key
from fedcohort.privacy.policy import ClientPolicy, Fresh
from fedcohort.privacy.response import SizeReport, draw_answer, draw_offset, whole_size
from fedcohort.privacy.size_sum import SizeShare, draw_share

_LONGEST_TASK = 200


@dataclass(frozen=True)
class SizeRequest:
    """What the server sends: for which task, by which law, in which round.

    ``round`` matters to clients with ``fresh="every-round"`` only.
    """

    task: str
    report: SizeReport
    round: int = 0

    def __post_init__(self) -> None:
        task: object = self.task  # it came over a wire, whatever its annotation says
        if not (isinstance(task, str) and 0 < len(task) <= _LONGEST_TASK):
            must = f"a name of 1 to {_LONGEST_TASK} characters"
            raise BadParameter("task", "SizeRequest", must, self.task)
        report: object = self.report
        if not isinstance(report, SizeReport):
            raise BadParameter("report", "SizeRequest", "a SizeReport", self.report)
        if not is_whole(self.round) or self.round < 0:
            raise BadParameter("round", "SizeRequest", "an int >= 0", self.round)

    def key(self, **more: int) -> str:
        """The question as text: equal questions, and no others, have equal keys."""
        law = self.report
        question = [self.task, law.threshold, law.levels, repr(law.epsilon), law.mechanism]
        return json.dumps([*question, more], sort_keys=True)


class PrivateSize:
    """Answers "how many samples do you have?" within a policy and a budget.

    Parameters
    ----------
    path
        A directory of this client alone; made if missing, readable by the owner only. It must
        outlive the client: whoever deletes it, deletes the memory of what was spent.
    policy
        What the client agrees to.
    fresh
        When a stored answer is *not* repeated; as the policy says by default. "never": one
        answer per question, whatever the size becomes; everything the server will ever see of
        it costs eps once. "new-level": a size that has moved to another level gets an answer of
        its own, booked; **the server then sees that the size changed**, which eps does not cover
        (no law that repeats its answers can hide it). "every-round": a new answer per round,
        each booked, as in the paper.
    lost
        When answers that were sent are missing from the memo: "refuse", or "respend": draw
        anew and book again.
    patience
        Seconds to wait for another process that is answering from the same directory.
    """

    def __init__(
        self,
        path: str | Path,
        policy: ClientPolicy | None = None,
        *,
        fresh: Fresh | None = None,
        lost: Lost = "refuse",
        patience: float = 10.0,
    ) -> None:
        self.policy = ClientPolicy() if policy is None else policy
        fresh = self.policy.fresh if fresh is None else fresh
        if fresh not in get_args(Fresh):
            raise BadParameter("fresh", "PrivateSize", f"one of {get_args(Fresh)}", fresh)
        self.fresh = fresh
        self._folder = PrivateFolder(path, self.policy.budget, lost, patience, self.policy.delta)

    @property
    def spent(self) -> float:
        """The eps spent so far, by all private answers from this directory."""
        return self._folder.spent

    def answer(self, size: int, request: SizeRequest) -> int:
        """The private answer to send; refuses by `PolicyRefused` or `BudgetExceeded`."""
        size = whole_size(size, "PrivateSize.answer")
        self.policy.check(request.report)
        with self._folder.opened():
            return self._answer(size, request)

    def share(self, size: int, share: SizeShare, task: str, round: int = 0) -> int:
        """What to put into the sum of all sizes; refuses as `answer` does.

        The answer is kept and repeated, as one about the size itself.
        """
        size = whole_size(size, "PrivateSize.share")
        self.policy.check_share_of_sum(share)
        again = f" round {int(round)}" if self.fresh == "every-round" else ""
        words = f"{share.threshold} {share.epsilon!r} {share.least}{again}"
        with self._folder.opened():
            key = counts_key(f"sum of sizes: {task} {words}")
            (answer,) = self._folder.answer(key, share.epsilon, lambda: [draw_share(share, size)])
        return int(answer)

    def _answer(self, size: int, request: SizeRequest) -> int:
        report = request.report
        scope = {"round": int(request.round)} if self.fresh == "every-round" else {}
        offset = self._offset(report, request.key(**scope))
        level = report.level(size, offset)
        key = request.key(**scope, **({"level": level} if self.fresh == "new-level" else {}))
        answer = self._folder.answer(key, report.epsilon, lambda: draw_answer(report, level))
        return int(answer)

    def _offset(self, report: SizeReport, key: str) -> int:
        memo, known = self._folder.memo, self._folder.memo.offset(key)
        if known is None:
            # No offset, so no answer either: refuse before anything is written.
            self._folder.accountant.require(key, report.epsilon)
            known = draw_offset(report)
            memo.keep_offset(key, known)
        return known
