"""Client of the Actions cache service, from inside a container. Service, network and archive trouble are values."""

from retrieval_eval.github.actions_cache.choice import Api, ServiceEnv
from retrieval_eval.github.actions_cache.client import ActionsCache, AlreadyThere, Miss, NotSaved, Restored, Saved
from retrieval_eval.github.actions_cache.keys import cache_keys
from retrieval_eval.github.actions_cache.limits import Limits

__all__ = [
    "ActionsCache",
    "AlreadyThere",
    "Api",
    "Limits",
    "Miss",
    "NotSaved",
    "Restored",
    "Saved",
    "ServiceEnv",
    "cache_keys",
]
