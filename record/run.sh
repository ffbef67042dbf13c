#!/usr/bin/env bash
# Measures the local tasks next to plain pipelines and to mrjob: word count of generated text and
# terasort of generated records, two processes each. Needs about 6 GB of disk in DIRECTORY, where its
# data stay in the end; PYTHON is an interpreter that has mrjob, without one that part is left out.
#
#   record/run.sh DIRECTORY [PYTHON] [TEXT] [RECORDS]
set -euo pipefail
data=$1 python=${2:-} text=${3:-1GiB} records=${4:-10000000}
cargo build --release --quiet -p slackline-local --example job
job=${CARGO_TARGET_DIR:-target}/release/examples/job
mkdir -p "$data"
export LC_ALL=C TMPDIR=$data
TIMEFORMAT='   %R s, processor %U s user, %S s system'

# Prints a name, runs the rest, prints its time.
measure() {
    echo "$1"
    shift
    time "$@"
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

rm -rf "$data"/{text,tera,words,sorted,part-words}
measure "generate-text $text" "$job" 2 0 "$data/text" "{\"program\":\"generate-text\",\"args\":{\"bytes\":\"$text\"}}"
measure "wordcount $text" "$job" 2 2 "$data/words" '{"program":"wordcount"}' "$data/text"
measure "awk with a table | sort" wordcount_awk "$data"/text/*
cat "$data"/words/part-* | sort | cmp - "$data/awk.out" && echo "   same counts"
measure "tr | sort | uniq -c" wordcount_tr "$data"/text/*
awk '{ print $2 "\t" $1 }' "$data/tr.out" | cmp - "$data/awk.out" && echo "   same counts"
rm -f "$data"/*.out

if [ -n "$python" ]; then
    head -c 33554432 "$data/text/part-00000" >"$data/part.txt"
    SPLIT=16777216 measure "wordcount 32 MiB" "$job" 2 2 "$data/part-words" '{"program":"wordcount"}' "$data/part.txt"
    measure "mrjob 32 MiB" wordcount_mrjob "$data/part.txt"
    awk '{ gsub("\"", "", $1); print $1 "\t" $2 }' "$data/mrjob.out" | sort >"$data/mrjob.sorted"
    cat "$data"/part-words/part-* | sort | cmp - "$data/mrjob.sorted" && echo "   same counts"
fi

measure "teragen $records" "$job" 2 0 "$data/tera" "{\"program\":\"teragen\",\"args\":{\"records\":$records}}"
SPLIT=134217728 measure "terasort $records" "$job" 2 2 "$data/sorted" '{"program":"terasort"}' "$data/tera"
measure "sort" terasort_sort "$data"/tera/*
cat "$data"/sorted/part-* | cmp - "$data/sort.out" && echo "   same order"
