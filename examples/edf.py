#!/usr/bin/env python3
"""Earliest deadline first: a policy that slackline starts as 'command:python3 examples/edf.py'.

The flow with the earliest deadline is served first, flows without one last. Among equals the
flow that was released first, then the job that became ready first. The schedules are those of
the policy edf. docs/policies-in-any-language.md has the protocol.
"""
import json
import sys

job_of = {}  # phase -> number of its job
flow_of = {}  # job -> its flow: deadline, release and number, in this order
since = {}  # job -> when its first phase became ready
ready = {}  # phase -> what it is sorted by

for line in sys.stdin:
    call = json.loads(line)
    answer = {}
    if "hello" in call:
        answer = {"protocol": 1, "style": "order"}
    changed = False
    for event in call.get("events", []):
        kind = event["event"]
        if kind == "flow-arrived":
            due = event["deadline"] is None, event["deadline"] or 0.0
            for job in event["jobs"]:
                flow_of[job["job"]] = *due, event["release"], event["flow"]
                for phase in filter(None, (job["map"], job["reduce"])):
                    job_of[phase["phase"]] = job["job"]
        elif kind == "phase-ready":
            phase = event["phase"]
            job = job_of[phase]
            since.setdefault(job, call["now"])
            ready[phase] = *flow_of[job], since[job], job, phase
            changed = True
        elif kind == "phase-done":
            ready.pop(event["phase"], None)
        elif kind == "flow-failed":
            ready = {p: key for p, key in ready.items() if key[3] != event["flow"]}
    if changed:
        answer["order"] = sorted(ready, key=ready.get)
    print(json.dumps(answer), flush=True)
