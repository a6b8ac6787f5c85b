"""A small retriever behind the protocol: shared words, cosine over the given vectors, and their fusion."""

import json
import re
import struct
import sys
from base64 import b64decode

PATHS = {"search": {"needs": ["vector"]}, "search_hybrid": {"needs": ["text", "vector"]}}
PATHS["search_bm25"] = {"needs": ["text"], "may_return_fewer": True}
personas = {}


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def floats(encoded):
    return [number for (number,) in struct.iter_unpack("<f", b64decode(encoded))]


def search(request, rows):
    legs, fused = {}, {}
    if request["path"] != "search_bm25":
        query, newest_first = floats(request["vector"]), list(rows)[::-1]
        cosine = {i: sum(map(float.__mul__, query, rows[i][1])) for i in newest_first}
        legs["semantic"] = sorted(cosine, key=cosine.get, reverse=True)
    if request["path"] != "search":
        shared = {i: len(both) for i, (text, _) in rows.items() if (both := text & words(request["text"]))}
        legs["bm25"] = sorted(shared, key=shared.get, reverse=True)
    for leg in legs.values():
        for rank, i in enumerate(leg, 1):
            fused[i] = fused.get(i, 0.0) + 1 / (25 + rank)
    ids = sorted(fused, key=lambda i: (-fused[i], i))[: request["limit"]]
    return {"ids": ids, "scores": [fused[i] for i in ids], "legs": legs}


def answer(request):
    if request["type"] == "hello":
        return {"version": 1, "name": "shared words and cosine", "paths": PATHS, "personas": 100}
    if request["type"] == "open":
        return {"rows": len(personas.setdefault(request["persona"], {}))}
    rows = personas[request["persona"]]
    if request["type"] == "insert":
        rows.update((row["id"], (words(row["text"]), floats(row["vector"]))) for row in request["rows"])
        return {"inserted": len(request["rows"])}
    if request["type"] == "close":
        return {"rows": len(personas.pop(request["persona"]))}
    return {"search": search}[request["type"]](request, rows)


for line in sys.stdin:
    if (request := json.loads(line))["type"] == "bye":
        break
    try:
        reply = {"type": request["type"], **answer(request)}
    except (LookupError, TypeError, ValueError, struct.error) as error:
        reply = {"type": "error", "message": repr(error)}
    print(json.dumps({"seq": request["seq"], **reply}), flush=True)
