#!/usr/bin/env python3
"""An agent that runs no task: each attempt ends as soon as it starts, with a part file of one line. The agent uses the
protocol of docs/fleet.md. It measures how many attempts a second a driver can start.

    slackline run FLOW --engine ssh:hosts=HOSTS,ssh=record/scripted-agent.py

The flow's jobs have maps alone, such as `generate-text`."""

import json
import os
import select
import sys

BEAT = 2.0  # seconds between two signs of life at most


def say(*messages):
    text = "".join(json.dumps(message) + "\n" for message in messages).encode()
    while text:
        text = text[os.write(1, text):]


def done(start):
    """Writes the part file of an attempt, and returns the message that the attempt has ended."""
    spec = start["spec"]
    task = spec["task"]["map"]["index"]
    os.makedirs(spec["directory"], exist_ok=True)
    part = os.path.join(spec["directory"], f"part-{task:05}")
    with open(part, "w") as out:
        out.write(f"{task}\n")
    seen = os.stat(part)
    counts = dict.fromkeys(
        ("records_in", "bytes_in", "skipped", "spills", "spilled", "combine_in", "combine_out"), 0)
    written = {"bytes": seen.st_size, "modified": seen.st_mtime_ns // 1000}
    outcome = {**counts, "records_out": 1, "bytes_out": seen.st_size, "written": written}
    return {"ended": {"n": start["n"], "report": {"done": outcome}}}


def main():
    left = b""
    while True:
        if not select.select([0], [], [], BEAT)[0]:
            say({"beat": {}})
            continue
        read = os.read(0, 1 << 16)
        if not read:
            return
        *lines, left = (left + read).split(b"\n")
        answers = []
        for line in lines:
            message = json.loads(line)
            if "hello" in message:
                hello = message["hello"]
                os.chdir(hello["directory"])
                answers.append({"ready": {"v": 1, "program": hello["program"], "processors": 2, "memory": None}})
            elif "start" in message:
                answers.append(done(message["start"]))
        if answers:
            say(*answers)


if __name__ == "__main__":
    sys.exit(main())
