#!/bin/bash
# Everything about the ways in which an option may be written.

#SBATCH --job-name="tidy up" # a comment after an option
#SBATCH -t10 -c2
##SBATCH --time=99
# SBATCH --time=98
#SBATCH --time 0:20:0    # overrides the ten minutes above
  #SBATCH --mem=1T
#SBATCH --mem 2G --output='out put/%j.log'
#SBATCH --error=errors.log
#SBATCH --export=NONE
#SBATCH --gpus-per-n=1
#SBATCH --container-image=docker://python:3.12
#PBS -l walltime=01:00:00

echo "started in $(basename "$0")"

#SBATCH --mem=64G
echo "$SLURM_JOB_NAME: $SLURM_EXPORT_ENV"
