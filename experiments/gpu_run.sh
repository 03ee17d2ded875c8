#!/usr/bin/env bash
# One long run on a GPU that is there for minutes at a time: Code-A1, then golden tests at equal compute, then both and
# their base on held-out questions. Each command runs what is next for SECONDS at most and leaves its state in OUT,
# from which the next one goes on, on whatever machine:
#
#   experiments/gpu_run.sh MODEL PROBLEMS HELD_OUT STATE_IN OUT SECONDS
#
#   MODEL     the base, a directory in Hugging Face format, wherever it lies this time
#   PROBLEMS  problem file to train on; its last two are measured on while the run goes on
#   HELD_OUT  problem file of HumanEval+
#   STATE_IN  OUT of the last command; empty or not there: the run begins
#   OUT       new or empty: state.json, its parts of at most 15 MiB, log.txt; at the end table.md and counts.json
#
# A stage gets Ctrl-C in time to save itself; Ctrl-C here does the same. The status is 0 where nothing went wrong, and
# the last line says what is next. The settings below must be the same in all commands of a run.
set -euo pipefail

ROUNDS=${ROUNDS:-75}         # of Code-A1
SEED=${SEED:-0}
SAMPLES=${SAMPLES:-16}       # answers to each held-out question
TOKENS=${TOKENS:-512}        # of such an answer, at most
PROMPTS=${PROMPTS:-example}   # what held-out questions are put in
BATCH=${BATCH:-41}           # held-out questions at a time
WORKERS=${WORKERS:-$(nproc)} # processes that score them
MOMENTS=${MOMENTS:-bfloat16} # numbers that Adam's moments travel in; float32 loses nothing and takes more room
RESERVE=${RESERVE:-60}       # seconds before the end at which a stage gets Ctrl-C; at a third of them it is killed
LEAST=${LEAST:-30}           # seconds that a stage needs to be begun
PYTHON=${PYTHON:-python}

fail() { echo "gpu_run.sh: $*" >&2; exit 2; }
[ $# -eq 6 ] || fail "there must be MODEL PROBLEMS HELD_OUT STATE_IN OUT SECONDS, got $# arguments"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
config=$(realpath "${CONFIG:-$root/experiments/real_gpu.yaml}")
[ -d "$1" ] || fail "MODEL must be a directory, got $1"
[ -f "$2" ] && [ -f "$3" ] || fail "PROBLEMS and HELD_OUT must be files, got $2 and $3"
[ -z "$(ls -A "$5" 2>/dev/null)" ] || fail "OUT must be new or empty, got $5 with files in it; name another"
[[ $6 =~ ^[1-9][0-9]*$ ]] && [ "$6" -gt $((RESERVE + LEAST)) ] ||
    fail "SECONDS must be a whole number above RESERVE and LEAST together ($((RESERVE + LEAST))), got $6"
mkdir -p "$5"
model=$(realpath "$1") problems=$(realpath "$2") held_out=$(realpath "$3") state_in=$(realpath -m "$4")
out=$(realpath "$5") limit=$6
work=$(realpath -m "${WORK:-$(mktemp -d)}")
[ ! -f "$PROMPTS" ] || PROMPTS=$(realpath "$PROMPTS")
[[ $PYTHON != */* ]] || PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/$(basename "$PYTHON") # a link of an environment stays
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}
export PYTORCH_CUDA_ALLOC_CONF=${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}
state() { "$PYTHON" "$root/experiments/gpu_state.py" "$@"; }

# The same names everywhere, for runs and journals hold them.
state unpack "$state_in" "$work" --model "$model"
cd "$work"
ln -s "$model" model
ln -s "$problems" problems.jsonl
ln -s "$held_out" held_out.jsonl

stage_command() { # STAGE ROUNDS: into the array `command`
    local recipe player
    case $1 in
    code-a1 | golden)
        recipe=$root/agents/train_grpo.py
        [ "$1" = code-a1 ] || recipe=$root/baselines/golden_tests.py
        command=("$PYTHON" "$recipe" --rounds "$2")
        if [ -f "$1/config.yaml" ]; then
            rm -f "$1/summary.json" # it says that all rounds are done
            command+=(--resume "$1")
        else
            command+=(--config "$config" --model model --problems problems.jsonl --seed "$SEED" --output "$1"
                --report-to none)
        fi
        ;;
    eval-coder-*)
        player=${1#eval-coder-}/coder/final
        [ "$1" != eval-coder-base ] || player=model
        command=("$PYTHON" -m codea1_env.cli eval --player "hf:$player" --problems held_out.jsonl --n "$SAMPLES"
            --prompts "$PROMPTS" --stop-at-fence --max-tokens "$TOKENS" --batch "$BATCH" --workers "$WORKERS" -o "$1")
        ;;
    esac
}

status=0 stage=start
trap 'status=130' INT
while [ $status -eq 0 ]; do
    told=$(state next . --rounds "$ROUNDS") || { status=$? && break; }
    read -r stage rounds <<<"$told"
    left=$((limit - SECONDS - RESERVE))
    if [ "$stage" = done ] || [ $left -lt "$LEAST" ]; then break; fi
    echo "$stage: at most $left s"
    stage_command "$stage" "$rounds"
    state run --log "$out/log.txt" --seconds $left --grace $((RESERVE * 2 / 3)) -- "${command[@]}" || status=$?
done
trap '' INT
packed=$(state pack . "$out" --rounds "$ROUNDS" --moments "$MOMENTS")
if [ "$stage" = done ]; then
    "$PYTHON" "$root/experiments/real_compare.py" . -o "$out/counts.json" | tee "$out/table.md"
fi
[ -n "${WORK:-}" ] || rm -r "$work"
if [ $status -ne 0 ] && [ $status -ne 130 ]; then
    tail -n 20 "$out/log.txt" >&2
    fail "$stage must end with 0, or 130 at Ctrl-C, got $status; what was saved before is in $out"
fi
echo "$packed"
