#!/bin/bash
# Kills random ranks of runs of random numbers of ranks at random moments, and goes on with other numbers. Every run
# that comes to its end must leave the files of one process, and no rank may outlive its run.
#   tests/cluster/kills.sh PROGRAM FOLDER KILLS [SEED]        package openmpi-bin
set -euo pipefail
program=$(realpath "$1")
folder=$(realpath "$2")
wanted=$3
source_dir=$(realpath "$(dirname "$0")/../..")
RANDOM=${4:-1}
. "$source_dir/tests/cluster/small_run.sh"

"$program" $(train alone) --quiet
lines() { wc -l 2> /dev/null < "$1" || echo 0; }
kills=0 runs=0 sessions=0 in_work=0 killed_in=""
while [ "$kills" -lt "$wanted" ]; do
  run=run$runs
  if [ -e "$folder/$run/config.yaml" ]; then arguments="resume $folder/$run"; else
    rm -rf "${folder:?}/$run"
    arguments=$(train "$run")
  fi
  ranks=$((RANDOM % 4 + 1))
  mpirun --allow-run-as-root --oversubscribe --bind-to none -q -n $ranks "$program" $arguments --quiet \
    2> "$folder/log" &
  mpirun=$!
  until children=$(pgrep -P $mpirun -x "$(basename "$program")") || ! kill -0 $mpirun 2> /dev/null; do
    sleep 0.02
  done
  if [ $((RANDOM % 3)) = 0 ]; then
    sleep $((RANDOM % 2)).$((RANDOM % 10))$((RANDOM % 10))  # wherever it is then, often still starting
  else
    # In the middle of the work: after a step that was not there before.
    steps=$(lines "$folder/$run/metrics.jsonl")
    while kill -0 $mpirun 2> /dev/null && [ "$(lines "$folder/$run/metrics.jsonl")" -le "$steps" ]; do sleep 0.02; done
    in_work=$((in_work + 1))
    sleep 0.$((RANDOM % 2))$((RANDOM % 10))
  fi
  mapfile -t children < <(pgrep -P $mpirun -x "$(basename "$program")" || true)
  was_killed=no
  if [ ${#children[@]} -gt 0 ] && kill -KILL "${children[RANDOM % ${#children[@]}]}" 2> /dev/null; then
    was_killed=yes
  fi
  sessions=$((sessions + 1))
  if wait $mpirun; then
    same_as_alone $run
    runs=$((runs + 1))
  elif [ $was_killed = yes ]; then
    kills=$((kills + 1))
    [ $((kills % 10)) != 0 ] || echo "$kills kills in $sessions sessions"
    killed_in+="$ranks"
  else
    echo "FAILED: session $sessions ended by itself"
    cat "$folder/log"
    exit 1
  fi
  for child in "${children[@]}"; do
    for _ in $(seq 100); do kill -0 "$child" 2> /dev/null || break; sleep 0.1; done
    if kill -0 "$child" 2> /dev/null; then echo "FAILED: rank $child outlives its run"; exit 1; fi
  done
done
run=run$runs
if [ -e "$folder/$run/config.yaml" ]; then
  mpirun --allow-run-as-root --oversubscribe --bind-to none -q -n 2 "$program" resume "$folder/$run" --quiet \
    2> "$folder/log" || { cat "$folder/log"; exit 1; }
  same_as_alone $run
  runs=$((runs + 1))
fi
echo "$kills kills in $sessions sessions, $in_work behind a new step (ranks: $killed_in); $runs runs came to their end with the files of one process"
