"""The one comment of a report on a pull request, kept up to date.

Owns the rules: when a comment is wanted, which one is ours, when a newer one must not be overwritten, what happens when
two runs post at once, and the words for a refusal. What is sent, how often and how long is `api.py`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from retrieval_eval.github.events import PullRequest
from retrieval_eval.github.marker import Marker, read_marker, without_marker
from retrieval_eval.github.payload import list_at, text_at, value_at
from retrieval_eval.github.pulls import ApiError, Comment, PullRequestApi, Standing, Trouble
from retrieval_eval.github.runner import RunnerEnvironment

BODY_LIMIT = 65_536
"""GitHub refuses longer comments; counted here in UTF-16 units, the stricter way."""

CREATE_TRIES = 2
CREATE_PAUSE_S = 3.0

_logger = logging.getLogger(__name__)


class CommentMode(StrEnum):
    """The input `comment`."""

    ALWAYS = "always"
    CHANGES = "changes"
    OFF = "off"


class Wanted(StrEnum):
    """What a mode makes of a report."""

    POST = "post"
    UPDATE_ONLY = "update only"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Draft:
    """What should stand on the pull request. `body` has no marker; `is_update_only` forbids a first comment."""

    pull: PullRequest
    report_id: str
    run_id: int
    run_attempt: int
    body: str
    is_update_only: bool = False

    @property
    def marker(self) -> Marker:
        """The first line of the comment."""
        return Marker(self.report_id, self.run_id, self.run_attempt, self.pull.head_sha)

    @property
    def text(self) -> str:
        """The whole comment."""
        return f"{self.marker}\n{self.body}"


@dataclass(frozen=True, slots=True)
class Posted:
    """The comment stands as drafted; `is_created` tells a first one from an update."""

    url: str
    is_created: bool


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The comment said the same already."""

    url: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """No comment was wanted."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stale:
    """A newer run or a newer commit has the word."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The comment could not be posted; `reason` says why and what helps, in one sentence for log and report."""

    reason: str


Outcome = Posted | Unchanged | Skipped | Stale | Refused

NO_TOKEN = "the comment was not posted: there is no token (hint: github-token: ${{ github.token }})"  # noqa: S105 - a sentence


def wanted(mode: CommentMode, report: Mapping[str, object]) -> Wanted:
    """Decide from the report (its JSON form): `changes` posts where a comparison moved or could not be made.

    Without a comparison, or with one in which no question moved, `changes` only keeps an existing comment up to date.
    """
    if mode is CommentMode.OFF:
        return Wanted.NOTHING
    if mode is CommentMode.ALWAYS or _has_news(value_at(report, "comparison")):
        return Wanted.POST
    return Wanted.UPDATE_ONLY


def connect(
    environment: RunnerEnvironment, *, sleep: Callable[[float], None], clock: Callable[[], float]
) -> PullRequestApi | None:
    """Return the API, or None where token or repository is missing; sends nothing yet. `clock`: seconds since 1970."""
    if not (environment.token and environment.repository):
        return None
    from retrieval_eval.github.api import GithubApi  # noqa: PLC0415 - PyGithub loads slowly; few runs need it

    return GithubApi(environment, sleep=sleep, clock=clock)


def upsert(api: PullRequestApi | None, draft: Draft, sleep: Callable[[float], None]) -> Outcome:
    """Create or update the comment of `draft.report_id`; never raises for anything that GitHub does.

    Ours is a comment that begins with the marker and was written by a bot or by our token. Of several the oldest is
    kept. `api` is None where there is no token: nothing is sent.
    """
    if api is None:
        return Refused(NO_TOKEN)
    if len(draft.text.encode("utf-16-le", "replace")) // 2 > BODY_LIMIT:
        return Refused(f"the comment was not posted: it is longer than {BODY_LIMIT:,} characters")
    try:
        return _upsert(api, draft, sleep)
    except ApiError as error:
        return Refused(_explained(error, draft.pull.is_fork))


def _upsert(api: PullRequestApi, draft: Draft, sleep: Callable[[float], None]) -> Outcome:
    if draft.pull.head_sha and api.pull(draft.pull.number).head_sha != draft.pull.head_sha:
        return Stale("the pull request has a newer commit than the measured one")
    own, standings = _own_comments(api, draft)
    outcome = _settle(api, draft, own, standings) if own else None
    if outcome is None and draft.is_update_only:
        return Skipped("no question moved, and there is no comment to keep up to date")
    return outcome or _create(api, draft, sleep)


def _own_comments(api: PullRequestApi, draft: Draft) -> tuple[list[Comment], dict[int, Standing]]:
    marked = [comment for comment in api.comments(draft.pull.number) if draft.marker.is_on(comment.body)]
    standings: dict[int, Standing] = {}
    if marked:
        try:
            standings = api.standing(marked)
        except ApiError as error:
            _logger.debug("whose comment, and whether hidden, is unknown: %s", error)
    own = [comment for comment in marked if comment.is_by_bot or _standing(standings, comment).is_ours]
    return sorted(own, key=lambda comment: comment.id), standings


def _settle(
    api: PullRequestApi, draft: Draft, own: Sequence[Comment], standings: Mapping[int, Standing]
) -> Outcome | None:
    """Bring the oldest of our comments up to date and remove the others; None where it vanished meanwhile."""
    kept, *doubles = own
    if _is_newer(kept, draft):
        return Stale("a later run has reported on this pull request already")
    outcome: Outcome
    if without_marker(kept.body) == without_marker(draft.text):
        outcome = Unchanged(kept.url)
    else:
        try:
            outcome = Posted(api.edit(kept, draft.text).url, is_created=False)
        except ApiError as error:
            if error.trouble is not Trouble.MISSING:
                raise
            return None
        if _standing(standings, kept).is_hidden:
            _try("show the comment again", partial(api.unhide, kept))
    _remove(api, doubles)
    return outcome


def _create(api: PullRequestApi, draft: Draft, sleep: Callable[[float], None]) -> Outcome:
    """Post, and look again: a request that seemed to fail may have worked, and another run may have been faster."""
    made = _posted_once(api, draft, sleep)
    try:
        own, standings = _own_comments(api, draft)
    except ApiError as error:
        _logger.debug("the comments could not be read again: %s", error)
        return Posted(made.url, is_created=True)
    older = [comment for comment in own if comment.id < made.id]
    if not older:
        _remove(api, [comment for comment in own if comment.id > made.id and not _is_newer(comment, draft)])
        return Posted(made.url, is_created=True)
    outcome = _settle(api, draft, older, standings)
    if outcome is None:
        return Posted(made.url, is_created=True)
    _remove(api, [made])
    return outcome


def _posted_once(api: PullRequestApi, draft: Draft, sleep: Callable[[float], None]) -> Comment:
    for attempt in range(1, CREATE_TRIES + 1):
        try:
            return api.create(draft.pull.number, draft.text)
        except ApiError as error:
            if error.trouble is not Trouble.UNCERTAIN:
                raise
            failure = error
        sleep(CREATE_PAUSE_S * attempt)
        arrived = [comment for comment in _own_comments(api, draft)[0] if comment.body == draft.text]
        if arrived:
            return arrived[0]
    raise failure


def _remove(api: PullRequestApi, doubles: Sequence[Comment]) -> None:
    for double in doubles:
        _try("remove a double of the comment", partial(api.delete, double))


def _try(purpose: str, action: Callable[[], None]) -> None:
    """For what is only tidiness: a failure costs a line of the debug log."""
    try:
        action()
    except ApiError as error:
        _logger.debug("could not %s: %s", purpose, error)


def _standing(standings: Mapping[int, Standing], comment: Comment) -> Standing:
    return standings.get(comment.id, Standing(is_ours=False, is_hidden=False))


def _is_newer(comment: Comment, draft: Draft) -> bool:
    """Run ids grow with time. A run that somebody started again may replace what a later run said."""
    theirs = read_marker(comment.body)
    return theirs is not None and draft.run_attempt == 1 and theirs.run_id > draft.run_id


def _has_news(comparison: object) -> bool:
    if not isinstance(comparison, Mapping):
        return False
    if comparison.get("comparable") is False:
        return True
    lanes = comparison.get("lanes")
    return isinstance(lanes, Mapping) and any(_has_moved(lane) for lane in lanes.values())


def _has_moved(lane: object) -> bool:
    recall = value_at(lane, "recall")
    verdicts = [text_at(entry, "verdict") for entry in recall.values()] if isinstance(recall, Mapping) else []
    return bool(list_at(lane, "moved")) or any(verdict != "unchanged" for verdict in verdicts)


def _explained(error: ApiError, is_fork: bool) -> str:
    text = error.message.lower()
    if error.trouble is Trouble.LIMITED:
        why, hint = "GitHub's rate limit did not end in time", "run the job again later"
    elif "locked" in text:
        why, hint = "the conversation is locked", "unlock it, or set comment: off"
    elif error.status == 401:
        why, hint = "the token is not valid", "github-token: ${{ github.token }}"
    elif error.trouble in (Trouble.REFUSED, Trouble.MISSING):
        whose = " on a pull request from a fork" if is_fork else ""
        why = f"the token cannot read or write comments{whose}"
        hint = "permissions: pull-requests: write; for forks and Dependabot mode: publish in a workflow_run workflow"
    elif error.trouble is Trouble.INVALID:
        why, hint = "GitHub did not take it", "please report this with the answer"
    else:
        why, hint = "GitHub did not answer as it should", "run the job again later"
    return f"the comment was not posted: {why} ({error}) (hint: {hint})"
