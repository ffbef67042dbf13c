#!/usr/bin/env bash
# Slackline beside other programs that do the same work, in turns: processor seconds (user and system) of whole processes,
# medians of five, and their ratio. Peers that are not installed are skipped.
# Usage: record/peers.sh DIRECTORY SLACKLINE; the directory is made and keeps the workloads.
set -euo pipefail
mkdir -p "$1"
dir="$(cd "$1" && pwd)"
slackline="$(realpath "$2")"
root="$(cd "$(dirname "$0")/.." && pwd)"
rounds=5

# The processor seconds of a command.
seconds() {
  local TIMEFORMAT='%U %S'
  { time "$@" > "$dir/stdout" 2> "$dir/error"; } 2> "$dir/time" || { cat "$dir/error" >&2; exit 1; }
  awk '{ print $1 + $2 }' "$dir/time"
}

median() { sort -n | sed -n "$(((rounds + 1) / 2))p"; }

# Prints a row of the table: what, the peer, and both medians with their ratio.
beside() {
  local what="$1" peer="$2" round
  : > "$dir/ours"
  : > "$dir/theirs"
  for ((round = 0; round < rounds; round++)); do
    seconds ours >> "$dir/ours"
    seconds theirs >> "$dir/theirs"
  done
  local own other
  own="$(median < "$dir/ours")"
  other="$(median < "$dir/theirs")"
  awk -v what="$what" -v peer="$peer" -v own="$own" -v other="$other" \
    'BEGIN { printf "| %s | %s | %.2f | %.2f | %.2f |\n", what, peer, own, other, own / other }'
}

echo "| work | peer | Slackline, s | peer, s | ratio |"
echo "|---|---|---:|---:|---:|"

# The simulator beside a bare event loop that gives the same sum of responses.
cargo build --quiet --release --manifest-path "$root/record/peers/simcore/Cargo.toml"
for durations in phase each; do
  workload="$dir/$durations.json"
  "$slackline" generate facebook-day --set jobs=3000 --set maps=200000 --set day=10800 --set machines=100 \
    --set durations="$durations" -o "$workload"
  ours() { "$slackline" simulate "$workload" -p fifo --format json; }
  theirs() { "$root/record/peers/simcore/target/release/peer-simcore" "$workload"; }
  a="$(ours 2> "$dir/error" | sed -n 's/^ *"cost": \([0-9]*\).*/\1/p' | head -1)"
  b="$(theirs | sed 's/\..*//')"
  [ "$a" = "$b" ] || { echo "the sums of responses differ: $a and $b" >&2; exit 1; }
  beside "FIFO, 209,000 tasks, durations by $durations" simcore
done

# 10,000 tasks of a command that does nothing, two at a time.
tasks=10000
mkdir -p "$dir/inputs"
if [ ! -e "$dir/inputs/$tasks" ]; then for ((n = 1; n <= tasks; n++)); do echo "$n" > "$dir/inputs/$n"; done; fi
cat > "$dir/tasks.toml" <<END
slackline = 1
[[flows]]
id = "f"
jobs = [{ id = "j", run = { mapper = "true", inputs = ["inputs/*"], output = "out", reducers = 0 } }]
END
cd "$dir"
ours() { "$slackline" run tasks.toml --state state --slots 2 --again --quiet; }
if command -v xargs > /dev/null; then
  theirs() { seq "$tasks" | xargs -P 2 -I{} sh -c true; }
  beside "10,000 tasks of \`true\`" xargs
fi
if command -v make > /dev/null; then
  { echo "all: $(seq -s ' ' -f 't%.0f' "$tasks")"; echo 't%:'; printf '\t@true;:\n'; } > Makefile
  theirs() { make -s -j 2; }
  beside "10,000 tasks of \`true\`" "GNU make"
fi
if command -v parallel > /dev/null; then
  theirs() { seq "$tasks" | parallel -j 2 true; }
  beside "10,000 tasks of \`true\`" "GNU parallel"
fi
