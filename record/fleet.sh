#!/usr/bin/env bash
# Flows on several machines that are all this one: over ssh to three addresses of loopback, and through a real Slurm of three
# nodes on loopback. Everything is written below DIRECTORY. What is measured is overhead and survival, not speed-up: there
# are no more processors than this machine has.
#
#   record/fleet.sh DIRECTORY SLACKLINE same      the same bytes here, over ssh, in an allocation and from outside of one
#   record/fleet.sh DIRECTORY SLACKLINE rate      tasks a second through one agent, beside this machine alone
#   record/fleet.sh DIRECTORY SLACKLINE faults    each fault with the same bytes; KILLS=20 is how often the driver is killed
#   record/fleet.sh DIRECTORY SLACKLINE service   the flows submitted to a service on such machines, killed and out of its allocation
#   record/fleet.sh DIRECTORY SLACKLINE speeds    machines of speed 1 and 4 under four policies, in turns; ROUNDS=3
#
# Needs what `fleet/ssh` and `fleet/slurm` need. A part that cannot be done is SKIPPED, loudly.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd) slackline=$(realpath "$2") part=$3
kills=${KILLS:-20} rounds=${ROUNDS:-3}
export LC_ALL=C
# Of an allocation in which this runs nothing is to be used.
for name in $(compgen -e | grep '^SLURM_' || true); do unset "$name"; done

lacking=
for site in ssh slurm; do
    missing=$("$repository/fleet/$site" lacking)
    [ -z "$missing" ] || { echo "SKIPPED, as there is no$missing: everything over $site" >&2; lacking+=" $site"; }
done
has() { [[ " $lacking " != *" $1 "* ]]; }

down() {
    has ssh && "$repository/fleet/ssh" down "$dir/sshd" 2> /dev/null || true
    has slurm && "$repository/fleet/slurm" down "$dir/slurmd" 2> /dev/null || true
}
trap down EXIT
rm -rf "$dir/sshd" "$dir/slurmd"
if has ssh; then "$repository/fleet/ssh" up "$dir/sshd"; ssh=$(cat "$dir/sshd/ssh") hosts=$dir/sshd/hosts; fi
if has slurm; then
    "$repository/fleet/slurm" up "$dir/slurmd" 3
    # shellcheck source=/dev/null
    . "$dir/slurmd/env"
fi

# An empty directory with inputs and a flow of commands and built-in programs: 102 tasks, some of which take a while.
prepared() {
    local at=$dir/$1 seconds=${2:-0.3}
    rm -rf "$at"
    mkdir -p "$at/in"
    for k in $(seq 40); do
        awk -v k="$k" 'BEGIN { for (i = 0; i < 2000; i++) print "word" (i * k) % 997, "is", i % 89 }' > "$at/in/$k.txt"
    done
    cat > "$at/flow.toml" <<FLOW
slackline = 1
[[flows]]
id = "commands"
deadline = 600.0
jobs = [
  { id = "split", run = { mapper = "sleep $seconds; tr ' ' '\\\\n'", reducer = "uniq -c", inputs = ["in/*.txt"], output = "out/split", reducers = 4 } },
  { id = "sum", run = { mapper = "sleep $seconds; awk '{ print \$2 \"\\\\t\" \$1 }'", reducer = "awk '{ print }'", inputs = ["@split"], output = "out/sum", reducers = 2 } },
]
[[flows]]
id = "programs"
jobs = [
  { id = "words", run = { program = "wordcount", inputs = ["in/1*.txt"], output = "out/words", reducers = 2 } },
  { id = "index", run = { program = "inverted-index", inputs = ["in/2*.txt"], output = "out/index", reducers = 2 } },
  { id = "sorted", run = { program = "sort", inputs = ["@words"], output = "out/sorted", reducers = 2 } },
]
FLOW
    cd "$at"
}

# The outputs as one number.
bytes() { (cd "$1" && find out -name 'part-*' | sort | xargs sha256sum | sha256sum | cut -c 1-16); }

# Whether the run in this directory has given the same bytes and a schedule that the judge accepts.
verdict() {
    local same=DIFFERENT judged
    [ "$(bytes .)" = "$expected" ] && same="same bytes"
    judged=$("$slackline" check state/workload.json state/schedule.json 2>&1 | head -1) || judged="NOT ACCEPTED: $judged"
    printf '%s; judge: %s; machines: %s\n' "$same" "$judged" "$(machines)"
}

machines() {
    python3 - <<'P'
import collections, json
done = collections.Counter()
for row in json.load(open("state/schedule.json"))["tasks"]:
    if row.get("outcome", "done") == "done":
        for place in row.get("places") or [row["machine"]]:
            done[place.split("/")[0]] += 1
print(", ".join(f"{name} {n}" for name, n in sorted(done.items())))
P
}

here=(--engine local:split=64KiB --slots 2)
over_ssh=(--engine "ssh:split=64KiB,hosts=${hosts:-none},ssh=${ssh:-ssh}")
in_slurm=(--engine slurm:split=64KiB)
from_outside=(--engine slurm:split=64KiB,nodes=3,salloc=--quiet)
# Each input file is a map.
flow=(run flow.toml --state state)
run() { "$slackline" "${flow[@]}" "$@" > out.txt 2> err.txt; }
in_allocation() { salloc --quiet --nodes 3 --exclusive "$slackline" "${flow[@]}" "${in_slurm[@]}" > out.txt 2> err.txt; }

reference() {
    prepared reference "${1:-0.3}"
    run "${here[@]}"
    expected=$(bytes .)
}

# Does a run, and prints its name, exit code, time and result.
report() {
    local name=$1 from=$EPOCHREALTIME code=0
    shift
    "$@" || code=$?
    awk -v name="$name" -v code="$code" -v from="$from" -v to="$EPOCHREALTIME" \
        'BEGIN { printf "%-40s exit %d, %5.1f s; ", name, code, to - from }'
    verdict
}

same() {
    reference 0.05
    echo "on this machine: $(bytes .)"
    if has ssh; then
        prepared over-ssh 0.05
        report "over ssh to three addresses" run "${over_ssh[@]}"
    fi
    if has slurm; then
        prepared in-allocation 0.05
        report "slurm, in an allocation" in_allocation
        prepared from-outside 0.05
        report "slurm, from a login node" run "${from_outside[@]}"
        prepared batch 0.05
        report "slurm, in a script of sbatch" sbatch --quiet --wait --nodes 3 --exclusive --output batch.txt --wrap \
            "'$slackline' ${flow[*]} ${in_slurm[*]}"
    fi
}

rate() {
    local at=$dir/rate
    rm -rf "$at"
    mkdir -p "$at/in"
    cd "$at"
    for k in $(seq 2000); do head -c 1024 /dev/zero | tr '\0' x > "in/$k"; done
    printf 'slackline = 1\n[[flows]]\nid = "f"\njobs = [ { id = "j", run = { program = "grep", args = { pattern = "x" }, inputs = ["in/*"], output = "out/j", reducers = 0 } } ]\n' > flow.toml
    printf '127.0.0.1 slots=2 name=one\n' > hosts
    local flow=(run flow.toml --state state)
    # What stands between: nothing but a pipe, or a real connection.
    printf '#!/bin/sh\nexec sh -c "$2"\n' > pipe
    chmod +x pipe
    local way from
    for turn in 1 2 3; do
        for way in here pipe ssh; do
            local options=(--engine local:split=1KiB --slots 2)
            [ $way != pipe ] || options=(--engine ssh:split=1KiB,hosts=hosts,ssh=./pipe)
            if [ $way = ssh ]; then
                has ssh || continue
                options=(--engine "ssh:split=1KiB,hosts=hosts,ssh=$ssh")
            fi
            rm -rf out state
            from=$EPOCHREALTIME
            run "${options[@]}"
            awk -v turn="$turn" -v way="$way" -v from="$from" -v to="$EPOCHREALTIME" \
                'BEGIN { printf "turn %d, %-5s %6.2f s, %5.0f tasks a second\n", turn, way, to - from, 2000 / (to - from) }'
        done
    done
}

# Processes of this user whose command line has these words, the youngest last, and whose directory is this one.
here() {
    local pid
    for pid in $(pgrep -f "$1" || true); do
        [ "$(readlink "/proc/$pid/cwd" 2> /dev/null)" = "$PWD" ] && echo "$pid"
    done
    true
}
agents() { here "^$slackline agent" ; }

# Waits until $1 tasks are finished.
until_done() {
    while [ "$(find state/maps out -mindepth 2 -maxdepth 2 2> /dev/null | wc -l)" -lt "$1" ]; do
        kill -0 "$driver" 2> /dev/null || return 0
        sleep 0.05
    done
}

begin() {
    # Without the function in between the number would be that of a shell.
    "$slackline" "${flow[@]}" "$@" > out.txt 2> err.txt &
    driver=$!
}

# A run in which something happens when some tasks are done.
with() {
    local what=$1
    shift
    begin "$@"
    until_done 12
    $what
    wait "$driver"
}

kill_agent() { kill -KILL "$(agents | head -1)"; }
# The agent continues once the run has ended, and then has to end all its tasks.
stop_agent() {
    local one
    one=$(agents | head -1)
    kill -STOP "$one"
    (sleep 40; kill -CONT "$one" 2> /dev/null) < /dev/null > /dev/null 2>&1 &
}
kill_slurmd() { kill -KILL "$(cat "$dir/slurmd/slurmd.n2.pid")"; }
# Without the daemon of the step too nothing of the node is left.
kill_node() {
    kill_slurmd
    local step
    for step in $(pgrep -f '^slurmstepd: '); do kill -KILL "$step"; break; done
}
revive() {
    PATH="$PATH:/usr/sbin" slurmd -N n2 -f "$dir/slurmd/slurm.conf"
    sleep 3
    scontrol update NodeName=n[1-3] State=RESUME 2> /dev/null || true
    sleep 1
}
cancel() { scancel --state=RUNNING --user="$(id -un)"; }

# Kills the driver again and again, and then lets it end.
kill_driver() {
    local n=0 longest=0 since ended=0 again=()
    while [ $n -lt "$kills" ]; do
        begin "$@" "${again[@]}"
        again=()
        sleep "$(awk -v n=$n 'BEGIN { srand(n + 1); print 0.4 + 1.6 * rand() }')"
        # A run that has already ended starts again.
        if ! kill -KILL "$driver" 2> /dev/null; then
            again=(--again)
            ended=$((ended + 1))
            continue
        fi
        wait "$driver" 2> /dev/null || true
        n=$((n + 1))
        since=$EPOCHREALTIME
        while [ -n "$(agents)$(here '^sleep')" ]; do sleep 0.05; done
        longest=$(awk -v a="$longest" -v from="$since" -v to="$EPOCHREALTIME" 'BEGIN { d = to - from; print (d > a ? d : a) }')
    done
    local code=0
    run "$@" || code=$?
    printf 'killed %d times (it ended %d times between), nothing left within %.2f s each time; %s\n' "$n" "$ended" "$longest" \
        "$(head -1 err.txt)"
    return $code
}

faults() {
    reference
    if has ssh; then
        prepared f1 && report "ssh: an agent is killed" with kill_agent "${over_ssh[@]}" && grep -h machine err.txt
        prepared f2 && report "ssh: a machine hangs" with stop_agent "${over_ssh[@]}" && grep -h machine err.txt
        prepared f3 1 && report "ssh: the driver is killed" kill_driver "${over_ssh[@]}"
    fi
    if has slurm; then
        prepared f4 && report "slurm: an agent is killed" with kill_agent "${from_outside[@]}" && grep -h machine err.txt
        prepared f5 && report "slurm: slurmd is killed" with kill_slurmd "${from_outside[@]}"
        grep -h machine err.txt || echo "(no machine left: the step continues without slurmd)"
        revive
        prepared f6 && report "slurm: slurmd and a step are killed" with kill_node "${from_outside[@]}" && grep -h machine err.txt
        revive
        prepared f7 1 && report "slurm: the driver is killed" kill_driver "${from_outside[@]}"
        prepared f8 && report "slurm: the allocation is cancelled" with cancel "${from_outside[@]}" && grep -hE 'machine|allocation' err.txt
        # Slurm's time is in minutes, and at 4 s a task the flow takes longer than one on a node.
        prepared f9 4 && report "slurm: allocations of a minute" run --engine slurm:split=64KiB,nodes=1,time=1 && grep -hE 'machine|allocation' err.txt
    fi
}

serve() {
    "$slackline" serve --state s "$@" >> serve.txt 2>&1 &
    driver=$!
    until "$slackline" queue --server s > /dev/null 2>&1; do
        kill -0 "$driver" || { cat serve.txt; return 1; }
        sleep 0.1
    done
}

# Submits the flows to a service, which is killed so often meanwhile.
submitted() {
    local kills=$1 n
    shift
    serve "$@" || return
    "$slackline" submit flow.toml --server s --quiet > /dev/null
    for n in $(seq "$kills"); do
        sleep "$(awk -v n="$n" 'BEGIN { srand(n + 1); print 0.4 + 1.6 * rand() }')"
        kill -KILL "$driver"
        wait "$driver" 2> /dev/null || true
        serve "$@" || return
    done
    # Its fourth column is the state of the submission.
    while "$slackline" queue --server s --all --format csv | tail -n +2 | cut -d , -f 4 | grep -qvE 'done|failed'; do sleep 0.2; done
    kill -TERM "$driver"
    wait "$driver"
}

# One directory for all: an index has the paths of its input.
service() {
    submission() {
        prepared service "$1"
        ln -s s/flows/flow state
    }
    submission 0.3 && submitted 0 "${here[@]}"
    expected=$(bytes .)
    if has ssh; then
        submission 0.3 && report "service over ssh" submitted 0 "${over_ssh[@]}"
        submission 1 && report "service over ssh, killed $kills times" submitted "$kills" "${over_ssh[@]}"
    fi
    if has slurm; then
        submission 0.3 && report "service on slurm" submitted 0 "${from_outside[@]}"
        submission 1 && report "service on slurm, killed $kills times" submitted "$kills" "${from_outside[@]}"
        submission 4 && report "service on slurm, a minute at a time" submitted 0 --engine slurm:split=64KiB,nodes=1,time=1
        grep -hE 'machine|allocation' serve.txt || true
    fi
}

# Each task does the same number of steps; a step takes four times as long on two machines of four.
speeds() {
    local at=$dir/speeds policy
    rm -rf "$at"
    mkdir -p "$at/in"
    cd "$at"
    for k in $(seq 24); do printf '%1023d\n' "$k" > "in/$k"; done
    local k flow=(run flow.toml --state state)
    {
        printf 'slackline = 1\n[objective]\nmetric = "response"\ncombine = "sum"\n'
        for k in 1 2 3; do
            printf '[[flows]]\nid = "f%d"\njobs = [\n' $k
            printf '  { id = "a", run = { mapper = "cat; sleep $(echo %s $PACE | awk '"'{ print \$1 * \$2 }'"')", inputs = ["in/*"], output = "out/f%d/a" } },\n' $k $k
            printf '  { id = "b", run = { mapper = "cat; sleep $(echo %s $PACE | awk '"'{ print \$1 * \$2 }'"')", reducer = "cat; sleep $PACE", inputs = ["@a"], output = "out/f%d/b", reducers = 2 } },\n]\n' $k $k
        done
    } > flow.toml
    printf 'fast1 slots=1\nfast2 slots=1\nslow1 slots=1\nslow2 slots=1\n' > hosts
    # The pace of a machine comes with the way to it.
    printf '#!/bin/sh\ncase $1 in slow*) PACE=1;; *) PACE=0.25;; esac\nexport PACE\nexec sh -c "$2"\n' > reach
    chmod +x reach
    local options=(--engine ssh:split=1KiB,hosts=hosts,ssh=./reach --history history)
    run "${options[@]}" --policy fifo --again
    for round in $(seq "$rounds"); do
        for policy in fifo fair dmrs auto; do
            run "${options[@]}" --policy $policy --again || { cat err.txt; continue; }
            printf 'round %d: ' "$round"
            awk -v policy=$policy '$1 == policy && $2 == "predicted" { predicted = $3 } $1 == policy && $2 == "ran" { ran = $3 }
                END { printf "%-5s sum of response %5.1f s (predicted %5.1f); ", policy, ran, predicted }' out.txt
            "$slackline" check state/workload.json state/schedule.json | cut -d : -f 1
        done
    done
}

case $part in
    same | rate | faults | service | speeds) $part ;;
    *)
        sed -n 2,14p "$0" >&2
        exit 2
        ;;
esac
