#!/bin/sh
# A log of requests, `host status` a line, always the same for the same NIGHT: what examples/nightly-run.toml works on.
seed=$(printf '%s' "$NIGHT" | cksum | cut -d ' ' -f 1) || exit 2
i=0
while [ "$i" -lt "$REQUESTS" ]; do
  seed=$(((seed * 1103 + 12345) % 65536))
  echo "host-$((seed / 8 % 7)) $((200 + seed / 64 % 4 * 100))"
  i=$((i + 1))
done
