#!/bin/sh
#SBATCH -N 2
#SBATCH -n 4
#SBATCH --ntasks-per-node 2
#SBATCH --cpus-per-task 8
#SBATCH --mem-per-cpu 1500M
#SBATCH --time 4:00:00
#SBATCH --exclusive
#SBATCH --hint=nomultithread
#SBATCH --job-name hybrid

export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
export OMP_PLACES=cores

echo "node $SLURM_NODEID: $SLURM_NTASKS_PER_NODE tasks of $OMP_NUM_THREADS threads"
if command -v mpirun > /dev/null; then
    mpirun -np "$SLURM_NTASKS_PER_NODE" ./solver input.nml
fi
