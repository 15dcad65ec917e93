#!/bin/bash
#SBATCH --job-name=climate-1850-2100
#SBATCH --time=6-12
#SBATCH --time-min=2-00:00:00
#SBATCH --mem=0
#SBATCH --nodes=1-1
#SBATCH --account=ocean
#SBATCH --comment "restart 17"
#SBATCH --chdir=/tmp
#SBATCH --reservation=maintenance_2026
#SBATCH --exclude=node[07-09,12]

echo "running in $(pwd), submitted in $SLURM_SUBMIT_DIR"
