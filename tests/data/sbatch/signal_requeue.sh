#!/bin/bash
#SBATCH --job-name=checkpointed
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --time=12:00:00
#SBATCH --cpus-per-task=2
#SBATCH --mem=4096

save() {
    echo "saving before the limit"
    touch checkpoint.ready
    exit 0
}
trap save USR1

if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
    echo "going on after restart $SLURM_RESTART_COUNT"
fi

for step in 1 2 3; do
    echo "step $step"
    sleep 0.01 &
    wait $!
done
