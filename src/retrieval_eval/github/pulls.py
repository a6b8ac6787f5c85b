"""What this package asks of GitHub's pull-request API, without any library: values, failures, one interface.

Owns the words between the rules (`events.py`, `comment.py`, `publish.py`) and the adapter (`api.py`). Sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request as the API shows it now; repositories are `owner/name`, "" for one that is gone."""

    number: int
    is_open: bool
    head_sha: str
    head_ref: str
    head_repository: str
    base_repository: str
    merge_sha: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of the pull request's conversation."""

    id: int
    node_id: str
    body: str
    url: str
    is_by_bot: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What only GraphQL knows of a comment: whether our token wrote it, whether it is hidden."""

    is_ours: bool
    is_hidden: bool


class Trouble(StrEnum):
    """Why a request came to nothing."""

    REFUSED = "refused"  # 401, 403: the token may not
    MISSING = "missing"  # 404, 410
    LIMITED = "limited"  # rate limits, after the waiting that was allowed
    INVALID = "invalid"  # 422 and the other 4xx
    UNCERTAIN = "uncertain"  # 5xx, no answer, or one that makes no sense: a write may have happened


class ApiError(Exception):
    """A request came to nothing, all retries included. Caught inside this package; holds no secret.

    `status` is 0 where no answer came; `wait_s` is what the service asked us to wait, None where it asked nothing.
    """

    def __init__(self, trouble: Trouble, status: int, message: str, wait_s: float | None = None) -> None:
        self.trouble, self.status, self.message, self.wait_s = trouble, status, message, wait_s
        super().__init__(f"{status or 'no answer'}: {message}")


class PullLookup(Protocol):
    """The part of the API that finds pull requests; raises `ApiError`."""

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """List the pull requests, in any state, that hold this commit."""
        ...

    def open_pulls_from(self, owner: str, branch: str) -> Sequence[Pull]:
        """List the open pull requests whose head is this branch of this owner's repository."""
        ...


class PullRequestApi(PullLookup, Protocol):
    """Every method raises `ApiError`. Reads, edits and deletions are repeated where that helps; creations never."""

    def pull(self, number: int) -> Pull:
        """Read one pull request."""
        ...

    def comments(self, number: int) -> Sequence[Comment]:
        """List all comments of a pull request, oldest first."""
        ...

    def standing(self, comments: Sequence[Comment]) -> dict[int, Standing]:
        """Tell by comment id what GraphQL knows; comments that it does not know are left out."""
        ...

    def create(self, number: int, body: str) -> Comment:
        """Post a comment, in one single request."""
        ...

    def edit(self, comment: Comment, body: str) -> Comment:
        """Replace the text of a comment."""
        ...

    def delete(self, comment: Comment) -> None:
        """Remove a comment."""
        ...

    def unhide(self, comment: Comment) -> None:
        """Show a hidden comment again."""
        ...
