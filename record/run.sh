#!/usr/bin/env bash
# Measures the local tasks next to plain pipelines and to mrjob: word count of generated text and
# terasort of generated records, two processes each. Needs about 10 GB of disk in DIRECTORY, where its
# data stay in the end; PYTHON is an interpreter that has mrjob, without one that part is left out (with
# it, the whole takes about an hour).
#
#   record/run.sh DIRECTORY [PYTHON] [TEXT] [RECORDS]
set -euo pipefail
data=$1 python=${2:-} text=${3:-1GiB} records=${4:-10000000}
cargo build --release --quiet -p slackline-cli
slackline=${CARGO_TARGET_DIR:-target}/release/slackline
mkdir -p "$data"
data=$(realpath "$data")
export LC_ALL=C TMPDIR=$data
TIMEFORMAT='   %R s, processor %U s user, %S s system'

# Prints a name, runs the rest, prints its time and its bytes a second.
measure() {
    local name=$1 bytes=$2 from=$EPOCHREALTIME
    shift 2
    echo "$name"
    time "$@"
    awk -v bytes="$bytes" -v from="$from" -v to="$EPOCHREALTIME" 'BEGIN { printf "   %.2f MB/s\n", bytes / 1e6 / (to - from) }'
}

# Bytes of all files of a directory.
bytes_of() { cat "$1"/part-* | wc -c; }

# Runs one job from the beginning: its name and what it does; more arguments are options of `run`.
ours() {
    local name=$1 work=$2
    shift 2
    printf 'slackline = 1\n[[flows]]\nid = "record"\njobs = [ { id = "%s", run = { %s, output = "%s" } } ]\n' \
        "$name" "$work" "$data/$name" >"$data/$name.toml"
    "$slackline" run "$data/$name.toml" --state "$data/state-$name" --slots 2 --again "$@" >"$data/$name.log" 2>&1
}

wordcount_tr() { cat "$@" | tr -s '[:space:]' '\n' | sort --parallel=2 -S 2G | uniq -c >"$data/tr.out"; }
wordcount_awk() { cat "$@" | awk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w "\t" n[w] }' | sort >"$data/awk.out"; }
terasort_sort() { sort --parallel=2 -S 2G "$@" >"$data/sort.out"; }
wordcount_mrjob() { "$python" "$data/mr.py" -r local --no-bootstrap-mrjob "$@" >"$data/mrjob.out" 2>"$data/mrjob.log"; }

cat >"$data/mr.py" <<'P'
from mrjob.job import MRJob


class WordCount(MRJob):
    def mapper(self, _, line):
        for word in line.split():
            yield word, 1

    def combiner(self, word, counts):
        yield word, sum(counts)

    def reducer(self, word, counts):
        yield word, sum(counts)


if __name__ == "__main__":
    WordCount.run()
P

ours text "program = 'generate-text', args = { bytes = '$text' }"
size=$(bytes_of "$data/text")
for turn in 1 2 3; do
    measure "wordcount $text, turn $turn" "$size" ours words "program = 'wordcount', inputs = ['$data/text'], reducers = 2"
done
measure "awk with a table | sort" "$size" wordcount_awk "$data"/text/part-*
cat "$data"/words/part-* | sort | cmp - "$data/awk.out" && echo "   same counts"
measure "tr | sort | uniq -c" "$size" wordcount_tr "$data"/text/part-*
awk '{ print $2 "\t" $1 }' "$data/tr.out" | cmp - "$data/awk.out" && echo "   same counts"
if [ -n "$python" ]; then
    measure "mrjob" "$size" wordcount_mrjob "$data"/text/part-*
    awk '{ gsub("\"", "", $1); print $1 "\t" $2 }' "$data/mrjob.out" | sort | cmp - "$data/awk.out" && echo "   same counts"
fi
rm -f "$data"/*.out

ours tera "program = 'teragen', args = { records = $records }"
size=$(bytes_of "$data/tera")
for turn in 1 2 3; do
    rm -f "$data/sort.out"
    measure "terasort $records, turn $turn" "$size" \
        ours sorted "program = 'terasort', inputs = ['$data/tera'], reducers = 2" --engine local:split=128MiB
    measure "sort, turn $turn" "$size" terasort_sort "$data"/tera/part-*
done
cat "$data"/sorted/part-* | cmp - "$data/sort.out" && echo "   same order"
