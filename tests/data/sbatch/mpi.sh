#!/bin/bash
#SBATCH --job-name="heat equation"
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --mem=16G
#SBATCH --time=45
#SBATCH --constraint=haswell
#SBATCH --switches=1

echo "rank $SLURM_PROCID of $SLURM_NTASKS on node $SLURM_NODEID of $SLURM_NNODES"
srun --mpi=pmix hostname
