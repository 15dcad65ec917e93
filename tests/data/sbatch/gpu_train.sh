#!/bin/bash -l
#SBATCH -J resnet50
#SBATCH -p gpu
#SBATCH -A vision
#SBATCH --gres=gpu:a100:2
#SBATCH -c 16
#SBATCH --mem=120G
#SBATCH -t 1-00:00:00
#SBATCH -o logs/%x-%j.log
#SBATCH --export=ALL,NCCL_DEBUG=INFO

if command -v module > /dev/null 2>&1; then
    module purge
    module load cuda/12.4
fi

echo "job $SLURM_JOB_ID in partition $SLURM_JOB_PARTITION on $SLURMD_NODENAME"
echo "$SLURM_GPUS_ON_NODE GPUs, $SLURM_CPUS_PER_TASK cores, $SLURM_MEM_PER_NODE MiB, NCCL_DEBUG=$NCCL_DEBUG"
python3 - <<'PYTHON'
import os
print("workers:", int(os.environ["SLURM_CPUS_PER_TASK"]) // int(os.environ["SLURM_GPUS_ON_NODE"]))
PYTHON
