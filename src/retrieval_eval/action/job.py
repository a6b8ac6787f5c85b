"""What every stage of the action is handed: the job's description, its settings, its effects, and where trouble goes.

Owns no stage. Trouble that does not change the numbers is collected here, once as a warning of the log and once for
the report; it is never an exception.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retrieval_eval.action.settings import SaveCache, Settings
from retrieval_eval.archive import ArchiveError, place_of
from retrieval_eval.errors import SettingsError
from retrieval_eval.github.actions_cache import ActionsCache, Api, ServiceEnv
from retrieval_eval.github.log import ActionsLog
from retrieval_eval.github.runner import RunnerEnvironment
from retrieval_eval.http import Http
from retrieval_eval.pipeline import Effects

SAVING_EVENTS = frozenset({"push", "schedule", "workflow_dispatch", "repository_dispatch"})
"""Events whose entries other runs can read, and may be written. A pull request's entry serves re-runs of itself only;
`pull_request_target`, `issue_comment`, `workflow_run` get a token that cannot write; a merge group's branch is gone
before anybody reads from it."""


@dataclass(frozen=True, slots=True)
class Job:
    """`scratch` is a folder outside the workspace that goes away with the job; `endpoint` is the hub's address."""

    environment: RunnerEnvironment
    settings: Settings
    log: ActionsLog
    http: Http
    service: ServiceEnv
    effects: Effects
    scratch: Path
    endpoint: str
    sleep: Callable[[float], None] = time.sleep
    wall_clock: Callable[[], float] = time.time
    degraded: list[str] = field(default_factory=list)

    @property
    def cache_folder(self) -> Path:
        """Where the embedding cache is."""
        return self.environment.workspace / self.settings.cache_path

    @property
    def report_file(self) -> Path:
        """Where the report JSON goes."""
        return self.environment.workspace / self.settings.report_path

    @property
    def comment_folder(self) -> Path:
        """Where a comment is handed over to another workflow."""
        return self.environment.workspace / self.settings.comment_folder

    @property
    def run_name(self) -> str:
        """This run and attempt: what ends the key of an entry that this run saves."""
        return f"{self.environment.run_id}.{self.environment.run_attempt}"

    @property
    def has_cache_service(self) -> bool:
        """Whether there is an Actions cache, and it is wanted."""
        return self.settings.cache and self.service.api is not Api.OFF

    @property
    def is_saving(self) -> bool:
        """Whether this job makes new entries in the Actions cache."""
        choice = self.settings.save_cache
        by_event = choice is SaveCache.AUTO and self.environment.event_name in SAVING_EVENTS
        return self.has_cache_service and (choice is SaveCache.TRUE or by_event)

    def degrade(self, reason: str) -> None:
        """Say once that something beside the numbers did not work, and keep it for the report."""
        reason = self.log.without_secrets(reason)
        if reason not in self.degraded:
            self.degraded.append(reason)
            self.log.warning(reason)

    def actions_cache(self, workspace: Path) -> ActionsCache:
        """The Actions cache, for paths below `workspace`."""
        return ActionsCache(self.service, self.http, workspace, self.scratch, self.log.mask)


def check_places(job: Job) -> None:
    """Raise `SettingsError` where a link that the checkout holds would lead what we write out of the workspace."""
    settings, problems = job.settings, []
    places = {
        "cache-path": settings.cache_path,
        "report-path": settings.report_path,
        "comment-folder": settings.comment_folder,
    }
    for name, path in places.items():
        try:
            inside = place_of(job.environment.workspace, path).rglob("*")
            links = (item.relative_to(job.environment.workspace) for item in inside if item.is_symlink())
            problem = next((f"'{link}' is a symbolic link" for link in links), "")
        except ArchiveError as error:
            problem = error.reason
        if problem:
            problems.append(f"input {name!r}: {problem}, expected a path of the workspace (hint: remove the link)")
    if problems:
        raise SettingsError(problems)


def with_warnings(document: Mapping[str, object], reasons: list[str]) -> dict[str, object]:
    """The report with `reasons` at the end of its warnings, each once."""
    warnings = document["warnings"]
    known = list(warnings) if isinstance(warnings, list) else []
    return {**document, "warnings": list(dict.fromkeys([*known, *reasons]))}
