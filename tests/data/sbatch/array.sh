#!/bin/bash
# One task per sample sheet line; at most five at once.
#SBATCH --job-name=align
#SBATCH --array=1-96:5%5
#SBATCH --time=02:30:00
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --output=align_%A_%a.out
#SBATCH --mail-type=FAIL,END
#SBATCH --mail-user=ada@example.org

set -euo pipefail

sample=$(printf 'sample_%03d' "$SLURM_ARRAY_TASK_ID")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX in array $SLURM_ARRAY_JOB_ID"
printf '%s\n' "$sample" > "$scratch/name"
OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK sort --parallel="$SLURM_CPUS_PER_TASK" "$scratch/name"
