#!/bin/bash
#SBATCH -n4 -N1
#SBATCH --mem-per-cpu=2G
#SBATCH -t 90
#SBATCH -J sweep --no-requeue
#SBATCH --nice=100
#SBATCH -L matlab:2
#SBATCH --tmp=20G

seq 8 | xargs -P "$SLURM_NTASKS" -I{} echo "parameter {} with ${SLURM_MEM_PER_CPU} MiB"
