# What the scripts beside it share: a run of seconds on the laboratory's models, and what of it must not depend on
# ranks, kills or hosts. Sourced with $program, $folder and $source_dir set.

for problem in '2eacadd?' '3a?' '7bd?' '1cab?' '9dd?' '4eab?'; do
  echo "{\"id\": \"$problem\", \"problem\": \"$problem\", \"answer\": \"1\"}"
done > "$folder/queries.jsonl"
cat > "$folder/suite.yaml" << SUITE
name: small
prompt_suffix: ""
benchmarks: [{name: problems, file: queries.jsonl, samples: 2}]
SUITE
cat > "$folder/config.yaml" << CONFIG
student: $source_dir/lab/models/student
teacher: $source_dir/lab/models/teacher
output: unset
data: {queries: $folder/queries.jsonl, prompt_suffix: "", select: {all: true}}
rollout: {max_response_tokens: 48, precision: f32}
train: {iterations: 12, responses_per_iteration: 24, minibatch: 12, learning_rate: 0.0001, teacher_precision: f32}
curriculum: {bank: {responses: 24}, stages: [{source: current, iterations: 6}, {source: initial}]}
trigger: {watch: always}
eval: {suite: $folder/suite.yaml, data: $folder, max_tokens: 32}
CONFIG
train() { echo train "$folder/config.yaml" "output=$folder/$1"; }

# RUN: hashes of weights, optimizer, banks, rollouts and evaluation, and of the metrics without times.
results() {
  (
    cd "$folder/$1"
    find checkpoints banks rollouts eval -name '*.safetensors' -o -name '*.jsonl' | grep -v metrics | sort |
      xargs sha256sum
    sed -E 's/"(unix_time|timing_s\/[^"]*|perf\/[^"]*)":[^,}]*,?//g' metrics.jsonl | sha256sum
  )
}
same_as_alone() {
  diff <(results alone) <(results "$1") || { echo "FAILED: $1 differs from one process"; exit 1; }
}
