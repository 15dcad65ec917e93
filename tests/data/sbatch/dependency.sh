#!/usr/bin/env bash
#SBATCH --job-name=report
#SBATCH --dependency=afterok:train:evaluate,afterany:clean-up
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --ntasks=1
#SBATCH --time=15:00
#SBATCH --qos=short
#SBATCH --begin=now+1hour

echo "report of $SLURM_JOB_NAME, submitted from $SLURM_SUBMIT_HOST"
