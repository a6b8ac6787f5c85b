"""GitHub's REST and GraphQL API through PyGithub, of which this module is the only home.

Owns authentication, paging, time limits and repeats, and turns every failure into `ApiError`. It knows nothing of
our comment. PyGithub's own repeats are off: they post a comment twice when a 502 hides a success, and wait for an hour
at a rate limit. Endpoints are called one by one, so that each method sends exactly the requests that it says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from github import Auth, Github, GithubException

from retrieval_eval.github.payload import list_at, number_at, text_at, value_at
from retrieval_eval.github.pulls import ApiError, Comment, Pull, Standing, Trouble
from retrieval_eval.github.runner import RunnerEnvironment

TIMEOUT_S = 15
TRIES = 3
PATIENCE_S = 60.0
"""All waiting between repeats in one run, together."""

LONGEST_WAIT_S = 30.0
"""A service that asks for more is taken as unavailable."""

PAGE_SIZE = 100
MAX_PAGES = 100

_STANDING = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id isMinimized viewerDidAuthor } } }"
_UNHIDE = "mutation($id: ID!) { unminimizeComment(input: {subjectId: $id}) { clientMutationId } }"

_logger = logging.getLogger(__name__)


class GithubApi:
    """`PullRequestApi` over the network, for one repository and one token."""

    def __init__(
        self, environment: RunnerEnvironment, *, sleep: Callable[[float], None], clock: Callable[[], float]
    ) -> None:
        """`clock` is the time in seconds since 1970: rate limits end at a time of day."""
        self._repository = f"/repos/{environment.repository}"
        self._token = environment.token
        self._sleep, self._clock = sleep, clock
        self._patience_s = PATIENCE_S
        self._requester = Github(
            auth=Auth.Token(environment.token),
            base_url=environment.api_url,
            timeout=TIMEOUT_S,
            user_agent="retrieval-eval",
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        ).requester

    def pull(self, number: int) -> Pull:
        """Read one pull request, in one request."""
        return _pull(self._request("GET", f"{self._repository}/pulls/{number}")[1])

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """List the first 100 pull requests of a commit."""
        parameters = {"per_page": PAGE_SIZE}
        _, answer = self._request("GET", f"{self._repository}/commits/{sha}/pulls", parameters=parameters)
        return [_pull(entry) for entry in _listed(answer)]

    def open_pulls_from(self, owner: str, branch: str) -> Sequence[Pull]:
        """List the first 100 open pull requests from a branch."""
        parameters = {"state": "open", "head": f"{owner}:{branch}", "per_page": PAGE_SIZE}
        _, answer = self._request("GET", f"{self._repository}/pulls", parameters=parameters)
        return [_pull(entry) for entry in _listed(answer)]

    def comments(self, number: int) -> Sequence[Comment]:
        """Read every page; GitHub sorts by age. Fails rather than miss comments beyond 10,000."""
        found: list[Comment] = []
        path = f"{self._repository}/issues/{number}/comments"
        for page in range(1, MAX_PAGES + 1):
            headers, answer = self._request("GET", path, parameters={"per_page": PAGE_SIZE, "page": page})
            found.extend(_comment(entry) for entry in _listed(answer))
            if 'rel="next"' not in str(headers.get("link", "")):
                return sorted(found, key=lambda comment: comment.id)
        raise ApiError(Trouble.INVALID, 200, f"more than {MAX_PAGES * PAGE_SIZE:,} comments")

    def standing(self, comments: Sequence[Comment]) -> dict[int, Standing]:
        """Ask for at most 100 comments, in one request."""
        asked = {comment.node_id: comment.id for comment in comments[:PAGE_SIZE] if comment.node_id}
        nodes = list_at(self._graphql(_STANDING, {"ids": list(asked)}), "data", "nodes")
        return {
            asked[text_at(node, "id")]: Standing(
                is_ours=value_at(node, "viewerDidAuthor") is True, is_hidden=value_at(node, "isMinimized") is True
            )
            for node in nodes
            if text_at(node, "id") in asked
        }

    def create(self, number: int, body: str) -> Comment:
        """Post once; repeated only after an answer that says that nothing was done (a rate limit)."""
        path = f"{self._repository}/issues/{number}/comments"
        return _comment(self._request("POST", path, body={"body": body}, is_repeatable=False)[1])

    def edit(self, comment: Comment, body: str) -> Comment:
        """Replace the text."""
        return _comment(self._request("PATCH", self._comment_path(comment), body={"body": body})[1])

    def delete(self, comment: Comment) -> None:
        """Remove the comment; one that is gone already is no failure."""
        try:
            self._request("DELETE", self._comment_path(comment))
        except ApiError as failure:
            if failure.trouble is not Trouble.MISSING:
                raise

    def unhide(self, comment: Comment) -> None:
        """Show the comment again."""
        self._graphql(_UNHIDE, {"id": comment.node_id})

    def _comment_path(self, comment: Comment) -> str:
        return f"{self._repository}/issues/comments/{comment.id}"

    def _graphql(self, query: str, variables: Mapping[str, object]) -> object:
        body = {"query": query, "variables": variables}
        _, answer = self._request("POST", self._requester.graphql_url, body=body, is_repeatable=False)
        if value_at(answer, "errors"):
            raise ApiError(Trouble.INVALID, 200, "GraphQL refused the query")
        return answer

    def _request(
        self,
        method: str,
        path: str,
        *,
        parameters: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        is_repeatable: bool = True,
    ) -> tuple[Mapping[str, Any], object]:
        """Send until it works, at most `TRIES` times; returns headers (lower-case names) and decoded JSON."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._send(method, path, parameters, body)
            except ApiError as failure:
                wait_s = _wait_s(failure, attempt, is_repeatable)
                if attempt == TRIES or wait_s is None or wait_s > min(LONGEST_WAIT_S, self._patience_s):
                    raise
                _logger.debug("%s %s: %s; again in %.0f s", method, path, failure, wait_s)
            self._patience_s -= wait_s
            self._sleep(wait_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _send(
        self, method: str, path: str, parameters: dict[str, Any] | None, body: dict[str, Any] | None
    ) -> tuple[Mapping[str, Any], object]:
        """Send once. Exceptions of the libraries end here: they may hold requests, and with them the token."""
        try:
            return self._requester.requestJsonAndCheck(method, path, parameters=parameters, input=body)
        except GithubException as error:
            failure = self._failure(error)
        except Exception as error:  # noqa: BLE001 - time-outs, cut answers, odd redirects: a comment never stops a run
            failure = ApiError(Trouble.UNCERTAIN, 0, type(error).__name__)
        raise failure

    def _failure(self, error: GithubException) -> ApiError:
        headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
        message = text_at(error.data, "message") or f"HTTP {error.status}"
        details = [text_at(detail, "message") for detail in list_at(error.data, "errors")]
        text = " ".join(" ".join([message, *details]).split()).replace(self._token, "***")[:200]
        is_limited = error.status in (403, 429) and (
            "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0" or "rate limit" in text.lower()
        )
        if is_limited or error.status == 429:
            return ApiError(Trouble.LIMITED, error.status, text, self._asked_wait_s(headers))
        if error.status in (401, 403):
            return ApiError(Trouble.REFUSED, error.status, text)
        if error.status in (404, 410):
            return ApiError(Trouble.MISSING, error.status, text)
        is_rejected = 400 <= error.status < 500 and error.status != 408
        return ApiError(Trouble.INVALID if is_rejected else Trouble.UNCERTAIN, error.status, text)

    def _asked_wait_s(self, headers: Mapping[str, str]) -> float | None:
        if headers.get("retry-after", "").isdecimal():
            return float(headers["retry-after"])
        if headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdecimal():
            return max(0.0, float(headers["x-ratelimit-reset"]) - self._clock()) + 1
        return None


def _wait_s(failure: ApiError, attempt: int, is_repeatable: bool) -> float | None:
    """Seconds to wait before the next attempt, None where there must be none."""
    if failure.trouble is Trouble.LIMITED:
        return failure.wait_s if failure.wait_s is not None else 10.0 * attempt
    if failure.trouble is Trouble.UNCERTAIN and is_repeatable:
        return float(attempt)
    return None


def _listed(answer: object) -> Sequence[object]:
    if not isinstance(answer, list):
        raise ApiError(Trouble.UNCERTAIN, 200, "the answer is not a list")
    return answer


def _pull(entry: object) -> Pull:
    number = number_at(entry, "number")
    if not number:
        raise ApiError(Trouble.UNCERTAIN, 200, "the answer is not a pull request")
    return Pull(
        number=number,
        is_open=text_at(entry, "state") == "open",
        head_sha=text_at(entry, "head", "sha"),
        head_ref=text_at(entry, "head", "ref"),
        head_repository=text_at(entry, "head", "repo", "full_name"),
        base_repository=text_at(entry, "base", "repo", "full_name"),
        merge_sha=text_at(entry, "merge_commit_sha"),
    )


def _comment(entry: object) -> Comment:
    identity = number_at(entry, "id")
    if not identity:
        raise ApiError(Trouble.UNCERTAIN, 200, "the answer is not a comment")
    return Comment(
        id=identity,
        node_id=text_at(entry, "node_id"),
        body=text_at(entry, "body"),
        url=text_at(entry, "html_url"),
        is_by_bot=text_at(entry, "user", "type") == "Bot",
    )
