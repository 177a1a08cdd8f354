"""A watch begins when it is asked for, not when its first line is fetched."""

import asyncio
import json
import threading

from local.cluster.nodes import NodeSpec
from local.cluster.resources import BY_PLURAL
from local.cluster.watch import Watch, WatchHub, WatchRequest


async def first_lines(watch: Watch, count: int) -> list[dict]:
    lines = watch.lines()
    events = [json.loads(await asyncio.wait_for(anext(lines), 60)) for _ in range(count)]
    await lines.aclose()
    return events


def a_watch(lab, **query: str) -> Watch:
    request = WatchRequest.of(BY_PLURAL["nodes"], None, None, query)
    store = lab.cluster.store
    return Watch(store=store, lock=threading.RLock(), hub=WatchHub(), request=request, render=lambda obj, _first: obj)


def test_what_changes_between_the_request_and_the_first_line_is_not_lost(lab):
    watch = a_watch(lab, fieldSelector="metadata.name=n9")
    lab.cluster.add_node(NodeSpec(name="n9"))
    lab.cluster.delete("nodes", "n9")
    assert [event["type"] for event in asyncio.run(first_lines(watch, 2))] == ["ADDED", "DELETED"]


def test_initial_events_end_with_their_bookmark(lab):
    watch = a_watch(lab, sendInitialEvents="true", allowWatchBookmarks="true", resourceVersion="0")
    events = asyncio.run(first_lines(watch, 4))
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
