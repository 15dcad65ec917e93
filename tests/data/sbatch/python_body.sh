#!/usr/bin/env python3
#SBATCH --job-name=histogram
#SBATCH --array=2,3,5,7,11
#SBATCH --time=5:00
#SBATCH --mem-per-gpu=8G
#SBATCH --gpus=1
#SBATCH --nodelist=gpu1
"""Which square is drawn by which task."""

import os
import sys

index = int(os.environ["SLURM_ARRAY_TASK_ID"])
print(f"{os.environ['SLURM_JOB_NAME']}: {index} squared is {index * index}, arguments {sys.argv[1:]}")
assert os.path.exists(__file__), "the script is a file"
