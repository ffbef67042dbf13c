#!/usr/bin/env bash
# Pins what the program says: a few hundred named runs of it, each a line of a hash, an exit code and its
# name, which is the command line after `slackline`.
#
#   record/pins.sh BINARY                    print the lines
#   record/pins.sh --check BINARY            compare them with record/pins.txt; exit code 1 if any differ
#   record/pins.sh [--check] --quick BINARY  only runs that need nothing of other runs
#   record/pins.sh [--check] --data BINARY   the runs over the traces in $SLACKLINE_DATA, record/pins-data.txt
#
# A hash is of standard output, of the exit code, and of every file the run writes. Runs named `[text] …` print
# texts for people and those named `[error] …` are refused with a message (for these the hash is of the
# message): both may change on purpose, so a difference is reported but does not fail the check, unless the
# exit code differs. Version numbers of the program are taken out first.
#
# Names are relative to a directory that has examples, experiments and testdata of this repository, with --data
# also the traces, and `made` for what runs write and later runs read. `< FILE` at the end is standard input.
set -euo pipefail
export LC_ALL=C
set -f

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# --- One run: `--one NAME`, in the directory that names are relative to. ---------------------------------

# Hash, exit code and name of one run.
one() {
    local name=$1 kind='' input=/dev/null word next='' directory rc=0
    local words=() written=()
    read -ra words <<<"$name"
    if [[ ${words[0]} == \[*\] ]]; then
        kind=${words[0]}
        words=("${words[@]:1}")
    fi
    if ((${#words[@]} > 2)) && [[ ${words[-2]} == '<' ]]; then
        input=${words[-1]}
        words=("${words[@]:0:${#words[@]}-2}")
    fi
    for word in "${words[@]}"; do
        case $next in --output | --schedule | --schedules | --history) written+=("$word") ;; esac
        next=$word
    done
    if [[ $kind == '[error]' ]]; then
        timeout 600 "$PINS_BINARY" "${words[@]}" <"$input" >"$PINS_LOGS/$$" 2>&1 || rc=$?
    else
        timeout 600 "$PINS_BINARY" "${words[@]}" <"$input" >"$PINS_LOGS/$$" 2>/dev/null || rc=$?
    fi
    for word in "${written[@]}"; do
        if [[ -d $word ]]; then
            while read -r directory; do
                printf '%s\n' "$directory" | cat - "$directory"
            done < <(find "$word" -type f \( -name '*.json' -o -name '*.csv' -o -name '*.svg' \) | sort)
        elif [[ -f $word ]]; then
            cat "$word"
        fi
    done >>"$PINS_LOGS/$$"
    printf '%s %s %s\n' \
        "$(sed "s/$PINS_VERSION/VERSION/g" "$PINS_LOGS/$$" | { cat; echo "$rc"; } | sha256sum | cut -d ' ' -f 1)" "$rc" "$name"
    rm -f "$PINS_LOGS/$$"
    [[ -z ${PINS_TIMES:-} ]] || echo "$SECONDS $name" >>"$PINS_TIMES"
}

if [[ ${1:-} == --one ]]; then
    one "$2"
    exit
fi

# --- The runs. -------------------------------------------------------------------------------------------
# Each function prints names; what an earlier one makes, a later one may read.

policies='fifo fair edf flex flowflex woha-hlf woha-lpf woha-mpf dmrs dmrs-identical dmrs-map-only mk-jr mk-tct-jr'
# Every value of every parameter, and those combinations that mean something together, by family.
variants=(
    'fifo:by=flow,fair:by=flow,flex:epoch=0,flex:epoch=7.5,flex:hand=minima,flex:hand=minima:epoch=0,flex:jobs=moldable,flowflex:epoch=0,flowflex:epoch=15'
    'dmrs:lp=paper,dmrs:key=full-rate,dmrs:key=completion,dmrs:reoptimise=no,dmrs:lp=paper:key=completion:reoptimise=no,dmrs-map-only:reoptimise=no'
    'mk-jr:times=area,mk-jr:times=stage,mk-tct-jr:times=stage,mk-tct-jr:times=best'
)
for woha in woha-hlf woha-lpf woha-mpf; do
    family=''
    for with in cap=search cap=scan pooled=yes late=follow lag=tasks cap=search:lag=tasks:late=follow cap=scan:pooled=yes; do
        family+=",$woha:$with"
    done
    variants+=("${family#,}")
done
instances='chain contract deadlines fork-join locality malleable-work minima-and-caps mixed-speeds no-length one-wave pools service-levels ties typed-hadoop1'
metrics='completion response makespan stretch slowdown tardy tardiness lateness sla piecewise'

# Documents that the runs read: the examples and the instances of the tests.
documents() {
    local name
    for name in $instances; do echo "testdata/instances/$name.toml"; done
    echo examples/nightly.toml
    echo examples/purdue-30.toml
    echo examples/three-workflows.toml
    echo examples/contract/workload.toml
}

# Workloads of every generator, small enough that all policies take a second or two; most go into files.
generated() {
    local set seed
    make() { echo "generate ${*:2} --output made/$1"; }
    make flex.toml flex-4.1
    make flex-minima.toml flex-4.1 --set jobs=25 --set slack=0.25 --set small=0.5 --seed 3
    make flex-sla.json flex-4.1 --set jobs=12 --set cost=sla --seed 4
    make flowflex.toml flowflex-5.1
    make flowflex-sla.toml flowflex-5.1 --set cost=sla --set flows=6 --seed 5
    make flowflex-wide.yaml flowflex-5.1 --set edge=0.1 --set wide=1 --set jobs=3..6 --set total-slots=40 --seed 6
    make gridmix.toml flowflex-5.2 --set maps=3..60
    make gridmix-gaps.json flowflex-5.2 --set gap=60 --set maps=3..60 --set machines=8 --seed 7
    make fig7.toml woha-fig7
    make fig7-urgent.toml woha-fig7 --set machines=24 --set share=0.6 --set jobs=15 --seed 23
    make yahoo.toml woha-yahoo --set workflows=20 --set jobs=60 --set single=5 --set maps-max=300 --set machines=40
    make yahoo-dropped.json woha-yahoo --set workflows=20 --set jobs=60 --set single=5 --set single-jobs=drop --set maps-max=300 --set machines=60 --seed 8
    make purdue.toml purdue --set jobs=12 --set spread=normal --seed 9
    make purdue-4.toml purdue --set jobs=4
    make facebook.toml facebook-table3 --set jobs=30
    make facebook-each.json facebook-table3 --set jobs=12 --set durations=each --seed 10
    make dmrs-a.toml dmrs
    make dmrs-elephants.toml dmrs --set mix=elephants --seed 11
    make dmrs-c.json dmrs --set mix=c --set benchmark=sort --set weights=integer --set fast=3 --set slow=9 --seed 12
    make day.toml facebook-day --set jobs=80 --set maps=4000
    make day-each.json facebook-day --set jobs=40 --set maps=1500 --set durations=each --set map-only=0.1 --set day=3600 --seed 13
    for set in flex-4.1 flowflex-5.1 flowflex-5.2 woha-fig7 woha-yahoo 'purdue --set spread=normal' facebook-table3 dmrs; do
        for seed in 1 2; do echo "generate $set --seed $seed"; done
    done
    echo "generate facebook-day --set jobs=2000 --set maps=60000 --seed 1 --format json"
    echo "generate facebook-table3 --set jobs=150 --set first-bin=3..9 --set reduces=0.5..2 --format yaml"
    echo "generate flowflex-5.1 --set steps=1 --set weights=0..3 --set extra=0 --set big=1 --set tall=1 --format json"
    echo "generate dmrs --set mix=b --set groups=4 --set interval=10 --set speed=2.5 --set map-rate=0.3 --set reduce-rate=0.1"
    echo "generate woha-yahoo --set layers=4 --set fan-in=2 --set fan-out=2 --set gap=30 --set deadlines=1.5"
    echo "generate flex-4.1 --set ratio=100 --set total-work=5000 --set task-work=20 --set deadline-span=3 --set steps=1"
}

# Workloads of `generated` that the policies run on.
made='flex.toml flex-minima.toml flex-sla.json flowflex.toml flowflex-sla.toml flowflex-wide.yaml gridmix.toml gridmix-gaps.json
    fig7.toml fig7-urgent.toml yahoo.toml yahoo-dropped.json purdue.toml purdue-4.toml facebook.toml facebook-each.json
    dmrs-a.toml dmrs-elephants.toml dmrs-c.json day.toml day-each.json'

# Runs that need nothing of other runs and take little: also what --quick runs.
small() {
    local document policy name k
    for document in $(documents); do
        name=${document//\//-}
        for k in "${!variants[@]}"; do
            echo "compare $document --policies ${variants[k]} --format json --schedules made/variants-$k-${name%.toml}"
        done
        echo "compare --policies all $document --format csv"
        echo "bound $document"
    done
    for policy in $policies; do
        for document in nightly purdue-30; do
            echo "simulate examples/$document.toml --policy $policy --format json"
        done
    done
}

# Every policy on every document, as documents and as tables.
simulated() {
    local document policy k
    for document in $(documents); do
        for policy in $policies; do
            [[ $document == examples/nightly.toml || $document == examples/purdue-30.toml ]] ||
                echo "simulate $document --policy $policy --format json"
        done
    done
    for policy in $policies; do echo "simulate examples/nightly.toml --policy $policy --all"; done
    echo "simulate examples/nightly.toml --policy edf"
    echo "simulate examples/nightly.toml --format json"
    echo "simulate examples/three-workflows.toml --policy fair:by=flow --format csv"
    for document in $made; do
        echo "compare --policies all made/$document --format json --schedules made/all-${document%.*}"
    done
    for document in fig7-urgent.toml gridmix-gaps.json dmrs-c.json facebook.toml flex-minima.toml flowflex-wide.yaml; do
        for k in "${!variants[@]}"; do
            echo "compare made/$document --policies ${variants[k]} --format json --schedules made/variants-$k-${document%.*}"
        done
    done
}

# Every option of the simulator.
options() {
    local with k=0 document policy
    local documents=(examples/nightly.toml testdata/instances/deadlines.toml testdata/instances/pools.toml
        testdata/instances/typed-hadoop1.toml made/fig7-urgent.toml made/facebook-each.json)
    while read -r with; do
        for document in "${documents[@]}"; do
            echo "compare --policies all $document $with --format json --schedules made/options-$((k++))"
        done
    done <<'OPTIONS'
--heartbeat 3
--heartbeat 0.7 --slowstart 0.05
--slowstart 0.5
--noise 0.4 --seed 2
--jitter 0.3 --seed 3
--noise 0.3 --jitter 0.2 --heartbeat 2 --slowstart 0.05 --seed 4
--knowledge exact
--knowledge exact --jitter 0.4 --seed 7
--knowledge learned
--knowledge learned --jitter 0.4 --seed 8
--deadlines 2 --metric tardiness
--machines 5 --slots 3
--machines 4 --map-slots 2 --reduce-slots 1 --speed 2.5
OPTIONS
    # Machines die often enough to matter, and seldom enough that every task ends.
    for with in 'examples/nightly.toml --crash-rate 9000 --repair 300' 'examples/three-workflows.toml --crash-rate 20000 --repair 500' \
        'testdata/instances/deadlines.toml --crash-rate 60 --repair 5' 'testdata/instances/pools.toml --crash-rate 60 --repair 5' \
        'testdata/instances/typed-hadoop1.toml --crash-rate 60 --repair 5' 'testdata/instances/mixed-speeds.toml --crash-rate 60 --repair 5' \
        'made/facebook.toml --crash-rate 40000 --repair 100' 'made/dmrs-a.toml --crash-rate 2000 --repair 50 --noise 0.2'; do
        echo "compare --policies all $with --seed 5 --format json --schedules made/options-$((k++))"
        echo "compare --policies all $with --jitter 0.2 --heartbeat 1 --slowstart 0.1 --seed 6 --format json --schedules made/options-$((k++))"
    done
    for document in examples/nightly.toml testdata/instances/deadlines.toml testdata/instances/locality.toml; do
        policy='fifo,fair,flex,flowflex,woha-lpf,dmrs,mk-jr'
        echo "compare $document --machines 3 --slots 2 --crash node-0@2+5 --format json --policies $policy --schedules made/options-$((k++))"
        echo "compare $document --machines 3 --slots 2 --crash node-0@1,node-1@4+20 --format json --policies $policy --schedules made/options-$((k++))"
    done
    for with in '--locality-wait 1' '--locality-wait 5' '--locality-wait 3 --heartbeat 1' '--locality-wait 2 --jitter 0.5 --seed 1'; do
        echo "compare --policies all testdata/instances/locality.toml $with --format json --schedules made/options-$((k++))"
    done
    for document in malleable-work service-levels chain; do
        for with in 0.5 2; do
            echo "compare --policies all testdata/instances/$document.toml --grain $with --format json --schedules made/options-$((k++))"
        done
    done
    for document in made/flex.toml made/flowflex.toml; do
        echo "compare --policies all $document --grain 1 --format json --schedules made/options-$((k++))"
    done
    echo "simulate - --policy fair --format json < examples/nightly.toml"
    echo "simulate examples/nightly.toml --policy dmrs --knowledge learned --jitter 0.3 --history made/learned-1.json --format json"
    echo "simulate examples/nightly.toml --policy flex --knowledge learned --crash-rate 9000 --repair 300 --history made/learned-2.json --format json"
    echo "simulate examples/three-workflows.toml --policy woha-lpf --knowledge learned --jitter 0.3 --history made/learned-3.json --format json"
}

# Objectives: each with each policy that looks at it, in the simulator and in plans; bounds of all.
objectives() {
    local metric combine document
    for metric in $metrics; do
        for combine in sum max; do
            for document in examples/nightly.toml testdata/instances/service-levels.toml testdata/instances/minima-and-caps.toml made/flowflex.toml; do
                [[ $metric == sla || $metric == piecewise ]] && [[ $document != *service-levels* ]] && continue
                echo "compare $document --metric $metric --combine $combine --deadlines 1.5 --policies flex,flowflex,dmrs,fair --format csv"
                echo "bound $document --metric $metric --combine $combine --deadlines 1.5 --format json"
            done
            for document in testdata/instances/minima-and-caps.toml testdata/instances/malleable-work.toml made/flex.toml; do
                [[ $metric == sla || $metric == piecewise ]] && continue
                echo "plan $document --policy flex --metric $metric --combine $combine --deadlines 2 --format json"
                echo "plan $document --policy flowflex --metric $metric --combine $combine --deadlines 2 --format json"
            done
        done
    done
    for combine in sum max; do
        for document in made/flex-sla.json made/flowflex-sla.toml testdata/instances/service-levels.toml; do
            echo "plan $document --policy flowflex --metric sla --combine $combine --format json"
            echo "bound $document --metric sla --combine $combine --format csv"
        done
        echo "plan made/flex-sla.json --policy flex --metric sla --combine $combine --format json"
        echo "compare --policies all examples/nightly.toml --metric response --combine $combine --weights ignore --format json"
        echo "compare --policies all made/dmrs-c.json --metric completion --combine $combine --weights use --format json"
    done
}

# Plans of every policy, on what it plans.
plans() {
    local policy document name
    for document in $(documents) made/flex-minima.toml made/flowflex-wide.yaml made/facebook.toml made/dmrs-a.toml made/dmrs-c.json made/purdue-4.toml; do
        echo "plan $document --format json"
    done
    for document in examples/purdue-30.toml examples/nightly.toml testdata/instances/one-wave.toml testdata/instances/minima-and-caps.toml; do
        for policy in fifo fair edf flex flex:jobs=moldable flowflex mk-jr mk-jr:times=stage mk-tct-jr mk-tct-jr:times=best dmrs dmrs-identical dmrs-map-only dmrs:lp=paper; do
            echo "plan $document --slots 4 --policy $policy --format json"
        done
    done
    for policy in dmrs dmrs-identical dmrs-map-only dmrs:lp=paper dmrs:key=full-rate dmrs:key=completion dmrs:reoptimise=no; do
        for document in made/dmrs-a.toml made/dmrs-elephants.toml made/facebook-each.json; do
            echo "plan $document --policy $policy --format json"
        done
    done
    for policy in mk-jr mk-jr:times=area mk-tct-jr mk-tct-jr:times=stage; do
        for document in made/purdue.toml made/facebook.toml testdata/instances/typed-hadoop1.toml; do
            echo "plan $document --policy $policy --format json"
        done
    done
    for policy in woha-hlf woha-lpf:cap=search woha-mpf:cap=scan woha-lpf:pooled=yes; do
        for document in examples/nightly.toml examples/three-workflows.toml made/yahoo.toml; do
            name=${document##*/}
            echo "plan $document --policy $policy --format json"
            echo "plan $document --policy $policy --output made/${name%.*}-${policy%%:*}${policy#*=}.plan"
        done
    done
    echo "plan - --policy flowflex --format json < testdata/instances/malleable-work.toml"
    echo "plan examples/purdue-30.toml --slots 4"
    echo "plan examples/purdue-30.toml --slots 4 --policy flowflex --speed 2 --all"
    echo "plan examples/purdue-30.toml --slots 4 --policy mk-jr --format csv"
    echo "plan testdata/instances/malleable-work.toml --policy flex --grain 0.5 --format json"
    echo "plan made/flowflex.toml --policy flowflex --output made/flowflex-plan.json"
    echo "plan made/flex-minima.toml --policy flex --output made/flex-plan.json"
    echo "plan made/dmrs-a.toml --policy dmrs --output made/dmrs-plan.json"
    echo "simulate examples/nightly.toml --policy fair:by=flow --output made/nightly-fair.json"
    echo "simulate examples/nightly.toml --policy woha-lpf --slowstart 0.05 --heartbeat 3 --output made/nightly-woha.json"
    echo "simulate examples/three-workflows.toml --policy edf --jitter 0.2 --seed 3 --output made/three-edf.json"
    echo "simulate testdata/instances/locality.toml --policy fifo --locality-wait 2 --crash node-0@3+5 --output made/locality-fifo.json"
    echo "simulate made/gridmix-gaps.json --policy flowflex --output made/gridmix-flowflex.json"
    echo "simulate made/flex-minima.toml --policy flex --grain 1 --output made/flex-simulated.json"
}

# Verbs that read what others made: check, explain, plan files, histories.
readers() {
    local pair flow
    for pair in 'made/flowflex.toml made/flowflex-plan.json' 'made/flex-minima.toml made/flex-plan.json' \
        'made/dmrs-a.toml made/dmrs-plan.json' 'examples/nightly.toml made/nightly-fair.json' \
        'examples/nightly.toml made/nightly-woha.json' 'examples/three-workflows.toml made/three-edf.json' \
        'testdata/instances/locality.toml made/locality-fifo.json' 'made/gridmix-gaps.json made/gridmix-flowflex.json' \
        'made/flex-minima.toml made/flex-simulated.json' 'examples/contract/workload.toml examples/contract/schedule.json'; do
        echo "check $pair --format json"
        echo "check $pair"
    done
    # The wrong workload, and the wrong cluster.
    echo "check examples/three-workflows.toml made/nightly-fair.json --format json"
    echo "check examples/nightly.toml made/nightly-fair.json --machines 2 --format json"
    for pair in nightly-fair nightly-woha; do
        for flow in reindex billing; do
            echo "explain made/$pair.json $flow --workload examples/nightly.toml"
            echo "explain made/$pair.json $flow --workload examples/nightly.toml --format json"
        done
    done
    for flow in w1 w3; do
        echo "explain made/three-edf.json $flow --workload examples/three-workflows.toml"
        echo "explain made/three-edf.json $flow --workload examples/three-workflows.toml --format csv"
    done
    echo "explain made/locality-fifo.json scan j --workload testdata/instances/locality.toml"
    echo "explain made/locality-fifo.json again --workload testdata/instances/locality.toml --format json"
    echo "simulate examples/nightly.toml --policy woha-hlf --plan-file made/nightly-woha-hlfwoha-hlf.plan --format json"
    echo "simulate examples/nightly.toml --policy woha-lpf --plan-file made/nightly-woha-lpfsearch.plan --format json"
    echo "simulate examples/three-workflows.toml --policy woha-mpf --plan-file made/three-workflows-woha-mpfscan.plan --format json"
    echo "compare made/yahoo.toml --policies woha-lpf,edf --plan-file made/yahoo-woha-lpfsearch.plan --format json"
    echo "compare --policies all examples/nightly.toml --knowledge learned --history made/learned-1.json --format json --schedules made/learned-nightly"
    echo "compare --policies all examples/three-workflows.toml --knowledge learned --history made/learned-3.json --jitter 0.2 --format csv"
    echo "simulate examples/nightly.toml --policy flowflex --knowledge learned --jitter 0.3 --seed 9 --history made/learned-2.json --format json"
    echo "compare --policies all examples/nightly.toml --knowledge learned --history examples/contract/history.json --format json"
}

# The split of slots, and the smallest cluster that does.
tuned() {
    local method mode times document
    for document in examples/purdue-30.toml made/purdue-4.toml made/facebook.toml; do
        for method in mk-sf-jr mk-tct-sf-jr; do
            for mode in wc strict; do
                echo "tune $document --total-slots 80 --method $method --mode $mode --format json"
            done
            for times in area stage best; do
                echo "tune $document --machines 19 --slots 4 --method $method --times $times --format json"
            done
        done
        echo "tune $document --total-slots 80 --all"
        echo "tune $document --total-slots 80 --format csv"
        echo "tune $document --total-slots 200 --proportional 20 --format json"
        echo "tune $document"
    done
    echo "tune made/purdue-4.toml --total-slots 40 --method ex-mk-sf-jr --format json"
    echo "tune made/purdue-4.toml --machines 10 --slots 8 --method ex-mk-sf-jr"
    echo "tune examples/purdue-30.toml --total-slots 80 --schedule made/tuned.json"
    echo "tune examples/purdue-30.toml --machines 19 --slots 4 --method mk-tct-sf-jr --mode strict --schedule made/tuned-tct.json --format json"
    for policy in edf fifo fair:by=flow woha-lpf flowflex flex; do
        echo "tune examples/nightly.toml --machines 1..50 --until missed=0 --policy $policy --format json"
    done
    echo "tune examples/nightly.toml --machines 1..50 --until missed=0 --policy edf --all"
    echo "tune examples/nightly.toml --machines 1..8 --until mean_response<1 --policy fair --format csv"
    echo "tune made/fig7-urgent.toml --machines 16..40 --until missed<2 --policy woha-mpf --jitter 0.2 --format json"
    echo "tune examples/three-workflows.toml --machines 20..40 --until missed=0 --policy edf --deadlines 2 --format json"
}

# Several seeds, forms, bounds, imports.
others() {
    local form document
    for form in table json csv; do
        echo "compare --policies all examples/nightly.toml --format $form"
        echo "compare --policies all examples/nightly.toml --jitter 0.2 --seeds 3 --format $form"
        echo "compare --policies all examples/nightly.toml --noise 0.3 --crash-rate 9000 --repair 60 --seeds 3 --seed 4 --threads 2 --format $form"
        echo "bound examples/purdue-30.toml --format $form"
        echo "bound examples/nightly.toml --format $form"
        echo "bound made/flowflex.toml --format $form"
        echo "bound testdata/instances/mixed-speeds.toml --format $form"
    done
    echo "compare --policies all made/swim.tsv --machines 20 --map-slots 2 --reduce-slots 1 --seeds 3 --format json"
    for document in $made; do echo "bound made/$document --format json"; done
    for form in toml json yaml; do
        for document in $(documents) examples/first-run.toml examples/three-deadlines.toml made/day-each.json; do
            echo "import $document --format $form"
        done
        echo "import made/swim.tsv --format $form"
        echo "import made/woha.xml --format $form"
        echo "import made/oozie.xml --actions made/actions.toml --format $form"
        echo "import made/wfformat.json --format $form"
        echo "import - --format $form < examples/nightly.toml"
    done
    echo "import examples/nightly.toml --machines 7 --slots 3 --metric tardiness --combine max --deadlines 2"
    echo "import made/swim.tsv --durations rate --machines 10 --slots 4"
    echo "import made/swim.tsv --durations rate --task-startup 5 --map-rate 8MiB --shuffle-rate 4MiB --output-rate 12MiB"
    echo "import made/swim.tsv --split 64MiB --reduce-bytes 256MiB --reduces-max 12 --seed 3"
    echo "import made/swim.tsv --reduces-max none --seed 4"
    echo "import made/oozie.xml --cases branch=quick"
    echo "import made/wfformat.json --runtime-scale 0.5"
    echo "compare --policies all made/swim.tsv --machines 20 --map-slots 2 --reduce-slots 1 --deadlines 3 --format json --schedules made/swim"
    echo "compare --policies all made/swim.tsv --total-slots 64 --durations rate --format json --schedules made/swim-rate"
    echo "compare --policies all made/woha.xml --machines 6 --map-slots 2 --reduce-slots 1 --format json --schedules made/woha"
    echo "compare --policies all made/oozie.xml --actions made/actions.toml --machines 3 --slots 2 --deadlines 2 --format json --schedules made/oozie"
    echo "compare --policies all made/wfformat.json --machines 2 --slots 2 --format json --schedules made/wfformat"
}

# Figures: all that take a few seconds as they are, the others with fewer seeds.
figures() {
    local figure
    for figure in baselines/woha-fig7 dmrs/fig2a dmrs/fig2b dmrs/fig2c dmrs/fig3 dmrs/fast job-ordering/fig1a \
        job-ordering/fig2a job-ordering/fig2b job-ordering/fig2c job-ordering/fig5 job-ordering/fig6 job-ordering/fig7 \
        job-ordering/fig8 job-ordering/fig8-total job-ordering/appendix-i flex/base flex/fig6a flex/fig6b flex/fig6c flex/jobs \
        flowflex/fig11 flowflex/fig11-unweighted flowflex/fig11-sla woha/fig14-19 woha/fig11 woha/fig3 woha/fig13b; do
        echo "repro ${figure%/*} ${figure#*/} --output made/${figure//\//-}"
    done
    for figure in flex/fig5a:5 flex/fig5b:5 flex/fig5c:3 flowflex/fig10:3 flowflex/fig10-unweighted:3 flowflex/fig10-sla:3 \
        flowflex/fig12:4 woha/three-workflows:5 woha/fig8-10:2 woha/fig12:2; do
        echo "repro ${figure%%/*} $(sed 's/.*\///; s/:.*//' <<<"$figure") --seeds ${figure#*:} --output made/${figure//[\/:]/-}"
    done
    echo "repro dmrs fig2a --seeds 3"
    echo "repro --spec experiments/dmrs/spec.toml --seeds 2"
}

# What is printed for people.
texts() {
    local verb policy
    echo "--version"
    echo "--help"
    for verb in compare simulate plan check explain tune bound import generate run history programs repro policies completions man; do
        echo "$verb --help"
    done
    for policy in '' $policies '--format json' '--format csv'; do echo "policies $policy"; done
    echo "generate --list"
    echo "generate dmrs --list"
    echo "programs"
    echo "repro"
    echo "man"
    echo "man compare"
    echo "completions bash"
}

# What is refused.
errors() {
    cat <<'ERRORS'
compare nowhere.toml
compare testdata
compare made/empty.toml
compare made/truncated.json
compare made/unknown.toml
compare made/version.yaml
compare made/cycle.toml
compare made/several.toml
compare made/short.tsv --machines 2 --slots 2
compare made/words.tsv --machines 2 --slots 2
compare examples/first-run.toml
compare examples/nightly.toml --policies fiffo
compare examples/nightly.toml --policies fifo:bye=flow
compare examples/nightly.toml --policies flex:epoch=-1
compare examples/nightly.toml --format xml
compare examples/nightly.toml --seeds 0
compare examples/nightly.toml --crash nowhere@3
compare examples/nightly.toml --crash-rate 5
compare examples/nightly.toml --heartbeat -1
compare examples/nightly.toml --slowstart 2
compare examples/nightly.toml --noise 9
compare examples/nightly.toml --knowledge learned --noise 0.3
compare examples/nightly.toml --history made/learned-1.json
compare examples/nightly.toml --machines 0
compare examples/nightly.toml --machines 3..5
compare examples/nightly.toml --slots 2 --map-slots 1
compare examples/nightly.toml --metric speed
compare examples/nightly.toml --metric tardiness
compare examples/nightly.toml --schedules examples/nightly.toml
compare examples/nightly.toml --split 64MiB
simulate examples/nightly.toml --policy fifo --plan-file made/yahoo-woha-lpfsearch.plan
simulate examples/nightly.toml --policy woha-lpf --plan-file examples/nightly.toml
simulate examples/nightly.toml --policy woha-lpf --plan-file made/yahoo-woha-lpfsearch.plan
simulate examples/nightly.toml --policy fifo --output nowhere/result.json
simulate examples/nightly.toml --policy fifo --crash node-0@3+9,node-0@5
plan examples/nightly.toml --policy flex
plan examples/nightly.toml --policy dmrs
plan testdata/instances/mixed-speeds.toml --policy flowflex
plan testdata/instances/pools.toml --policy mk-jr
check examples/nightly.toml examples/nightly.toml
check examples/nightly.toml nowhere.json
explain made/nightly-fair.json nosuchflow --workload examples/nightly.toml
explain made/nightly-fair.json
tune examples/nightly.toml
tune examples/purdue-30.toml --total-slots 1
tune examples/purdue-30.toml --method ex-mk-sf-jr
tune examples/purdue-30.toml --heartbeat 3
tune examples/purdue-30.toml --metric response
tune examples/purdue-30.toml --method mk-tct-sf-jr --proportional 8
tune examples/nightly.toml --machines 1..5 --until missed
tune examples/nightly.toml --machines 1..5 --until missed=0
import made/oozie.xml --cases branch=nowhere
import made/orphan.xml
generate nosuch
generate purdue --set jobs=31
generate purdue --set job=3
generate flex-4.1 --set small
repro nosuch
repro dmrs nosuch
policies nosuch
simulat
ERRORS
}

# The runs over real traces, by their kind.
data_runs() {
    local trace with k
    shopt -s nullglob
    set +f
    for trace in wfcommons/*.json; do
        echo "import $trace --to json"
        echo "compare --policies all $trace --machines 4 --slots 2 --deadlines 2 --format json --schedules made/${trace//\//-}"
        echo "bound $trace --machines 4 --map-slots 2 --reduce-slots 1 --format json"
        for with in flowflex woha-lpf; do
            echo "plan $trace --machines 4 --slots 2 --deadlines 1.5 --policy $with --format json"
        done
    done
    for trace in oozie/*.xml; do
        echo "import $trace --to json"
        echo "compare --policies all $trace --machines 3 --slots 2 --deadlines 2 --format json --schedules made/${trace//\//-}"
    done
    for trace in oozie/*.job.properties; do
        echo "import ${trace/job.properties/workflow.xml} --properties $trace --to json"
    done
    for trace in swim/*first*.tsv; do
        echo "import $trace --to json"
        echo "import $trace --durations rate --to json"
        for with in '--machines 40 --map-slots 2 --reduce-slots 1' '--machines 40 --slots 3 --deadlines 3 --noise 0.3 --seed 2' \
            '--machines 60 --map-slots 2 --reduce-slots 1 --slowstart 0.05 --heartbeat 3 --jitter 0.2'; do
            echo "compare --policies all $trace $with --format json --schedules made/$(echo "$trace$with" | tr -c 'a-z0-9\n' -)"
        done
        for k in "${!variants[@]}"; do
            echo "compare $trace --machines 40 --map-slots 2 --reduce-slots 1 --policies ${variants[k]} --format json --schedules made/variants-$k-${trace//\//-}"
        done
        echo "tune $trace --machines 20..60 --map-slots 2 --reduce-slots 1 --deadlines 3 --until missed<5 --policy edf --format json"
    done
    for trace in swim/*_0.tsv; do
        echo "import $trace --to json"
        for with in fifo fair edf flex woha-lpf dmrs mk-jr; do
            echo "simulate $trace --machines 600 --map-slots 2 --reduce-slots 1 --deadlines 3 --policy $with --format json"
        done
    done
    set -f
}

# --- Files of our own that runs read. --------------------------------------------------------------------

write_inputs() {
    # A day of jobs by a formula: id, submit time, gap, bytes of input, shuffle and output.
    awk 'BEGIN {
        for (k = 0; k < 40; k++) {
            gap = (k * 37) % 90
            at += gap
            printf "job%d\t%d\t%d\t%.0f\t%.0f\t%.0f\n", k, at, gap, (k * k * 48271 % 9973) * 2e6,
                k % 3 == 0 ? 0 : (k * 16807 % 7919) * 3e5, (k * 69621 % 1009) * 1e6
        }
    }' >made/swim.tsv
    cat >made/woha.xml <<'X'
<workflows>
  <workflow name="nightly" deadline="300" weight="3">
    <dataset path="/logs/raw"/>
    <job name="extract"><jar>etl.jar</jar><main-class>E</main-class><input>/logs/raw</input><output>/data/extracted</output>
      <maps tasks="40" seconds="12" max="30"/><reduces tasks="10" seconds="11"/></job>
    <job name="join"><jar>etl.jar</jar><main-class>J</main-class><input>/data/extracted/part-0</input><output>/out/joined</output>
      <maps tasks="12" seconds="5"/><reduces tasks="4" seconds="7.5"/></job>
    <job name="count"><jar>etl.jar</jar><main-class>C</main-class><input>/data/extracted</input><output>/out/count</output>
      <maps tasks="6" seconds="3"/></job>
  </workflow>
  <workflow name="late" deadline="120" release="60">
    <dataset path="/logs/late"/>
    <job name="scan"><jar>etl.jar</jar><main-class>S</main-class><input>/logs/late</input><output>/out/late</output>
      <maps tasks="25" seconds="8"/><reduces tasks="3" seconds="6"/></job>
  </workflow>
</workflows>
X
    cat >made/orphan.xml <<'X'
<workflow name="w"><job name="a"><jar>x.jar</jar><input>/nowhere</input><output>/o</output><maps tasks="1" seconds="1"/></job></workflow>
X
    cat >made/oozie.xml <<'X'
<workflow-app name="report" xmlns="uri:oozie:workflow:0.5">
  <start to="fork"/>
  <fork name="fork"><path start="logs"/><path start="users"/></fork>
  <action name="logs"><map-reduce><job-tracker>j</job-tracker><name-node>n</name-node></map-reduce><ok to="join"/><error to="fail"/></action>
  <action name="users"><map-reduce><job-tracker>j</job-tracker><name-node>n</name-node></map-reduce><ok to="join"/><error to="fail"/></action>
  <join name="join" to="branch"/>
  <decision name="branch"><switch><case to="quick">${day eq "monday"}</case><default to="full"/></switch></decision>
  <action name="quick"><map-reduce><job-tracker>j</job-tracker><name-node>n</name-node></map-reduce><ok to="end"/><error to="fail"/></action>
  <action name="full"><map-reduce><job-tracker>j</job-tracker><name-node>n</name-node></map-reduce><ok to="end"/><error to="fail"/></action>
  <kill name="fail"><message>failed</message></kill>
  <end name="end"/>
</workflow-app>
X
    cat >made/actions.toml <<'X'
deadline = 900
[actions.logs]
maps = 12
reduces = 4
seconds = { map = 20.5, reduce = 30 }
[actions.users]
maps = 3
seconds = 9
[actions.full]
maps = 8
reduces = 2
seconds = { map = 15, reduce = 25 }
X
    cat >made/wfformat.json <<'X'
{"name": "w", "schemaVersion": "1.5", "workflow": {
 "specification": {"tasks": [
  {"name": "a", "id": "a1", "parents": [], "children": ["b1", "b2"]},
  {"name": "b", "id": "b1", "parents": ["a1"], "children": ["c1"]},
  {"name": "b", "id": "b2", "parents": ["a1"], "children": ["c1"]},
  {"name": "c", "id": "c1", "parents": ["b1", "b2"], "children": []}]},
 "execution": {"makespanInSeconds": 30, "executedAt": "2026-01-01T00:00:00Z", "tasks": [
  {"id": "a1", "runtimeInSeconds": 3.5}, {"id": "b1", "runtimeInSeconds": 10.25},
  {"id": "b2", "runtimeInSeconds": 8}, {"id": "c1", "runtimeInSeconds": 2}]}}}
X
    : >made/empty.toml
    printf '{"slackline": 1,\n "flows": [{"id": "a"' >made/truncated.json
    printf 'slackline = 1\n\n[[flows]]\nid = "a"\ncolour = 3\njobs = []\n' >made/unknown.toml
    printf 'slackline: 2\nflows: []\n' >made/version.yaml
    printf 'slackline = 1\n[[flows]]\nid = "a"\njobs = [{ id = "x", after = ["y"], map = { tasks = 1, seconds = 1.0 } }, { id = "y", after = ["x"], map = { tasks = 1, seconds = 1.0 } }]\n' >made/cycle.toml
    printf 'slackline = 1\n[[flows]]\nid = "a"\nweight = -1.0\njobs = [{ id = "x", map = { tasks = 0, seconds = 1.0 } }]\n' >made/several.toml
    printf 'job0\t1\t1\t5\t5\t5\njob1\t2\n' >made/short.tsv
    printf 'job0\tone\t1\t5\t5\t5\n' >made/words.tsv
}

# --- All runs, or the comparison. ------------------------------------------------------------------------

check=no part=all
while [[ ${1:-} == --* ]]; do
    case $1 in
    --check) check=yes ;;
    --quick) part=quick ;;
    --data) part=data ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
[[ $# == 1 && -x $1 ]] || { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
PINS_BINARY=$(realpath "$1")
PINS_VERSION=$("$PINS_BINARY" -V | cut -d ' ' -f 2 | sed 's/\./\\./g')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PINS_LOGS=$work/logs
# Nothing of the user's own.
export SLACKLINE_CONFIG=
export PINS_BINARY PINS_VERSION PINS_LOGS
mkdir "$PINS_LOGS" "$work/in" "$work/in/made"
cd "$work/in"
for name in examples experiments testdata; do ln -s "$here/../$name" "$name"; done
write_inputs

# Runs all names of standard input, several at a time.
stage() { xargs -r -d '\n' -n 1 -P "$(nproc)" bash "$here/${BASH_SOURCE[0]##*/}" --one; }

case $part in
quick) small | stage ;;
data)
    data=$(realpath "${SLACKLINE_DATA:?the directory of the traces}")
    set +f
    for name in "$data"/*/; do ln -s "$name" .; done
    set -f
    data_runs | stage
    ;;
all)
    generated | stage
    { small; simulated; options; objectives; plans; figures; } | stage
    { readers; tuned; others; } | stage
    { texts | sed 's/^/[text] /'; errors | sed 's/^/[error] /'; } | stage
    ;;
esac | sort -k 3 >"$work/found.txt"

if [[ $check == no ]]; then
    cat "$work/found.txt"
    exit
fi
kept=$here/pins.txt
[[ $part != data ]] || kept=$here/pins-data.txt
# By name: kept hash and code beside those found, `-` where a run is only in one of them.
awk -v quick="$part" '
    function name_of() { return substr($0, length($1) + length($2) + 3) }
    NR == FNR { hash[name_of()] = $1; code[name_of()] = $2; next }
    {
        name = name_of()
        seen[name] = 1
        kind = name ~ /^\[text\]/ ? "text" : name ~ /^\[error\]/ ? "error" : "result"
        if (!(name in hash)) { print "new:       " name; bad++ }
        else if (hash[name] == $1) equal[kind]++
        else if (code[name] != $2) { print "exit code " code[name] " -> " $2 ": " name; bad++ }
        else if (kind == "result") { print "differs:   " name; bad++ }
        else { print "reworded:  " name; other[kind]++ }
    }
    END {
        if (quick != "quick") for (name in hash) if (!(name in seen)) { print "missing:   " name; bad++ }
        printf "results: %d equal, %d not; texts: %d equal, %d reworded; errors: %d equal, %d reworded\n",
            equal["result"], bad, equal["text"], other["text"], equal["error"], other["error"]
        exit bad > 0
    }' "$kept" "$work/found.txt"
