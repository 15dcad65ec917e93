"""A Slurm batch script as a job of this system: text in, pieces of a document out.

    options.py        every option of sbatch's manual, and what is said of those that have no counterpart here
    directives.py     the `#SBATCH` lines of a script, read exactly as sbatch reads them
    quantities.py     times, sizes, counts, GPUs as Slurm writes them (a bare time is minutes, a bare size is MiB)
    machine_names.py  `gpu[1-3,7]` -> gpu1, gpu2, gpu3, gpu7
    dependencies.py   `afterok:prepare,afterany:fetch` -> `after`
    calls.py          the lines of a script that call srun, mpirun and other commands of Slurm
    shape.py          nodes, tasks, cores, memory and GPUs -> one task, or a gang
    importing.py      all of it together: `read_script`

Pure: nothing here asks the machine or the store.
"""

from stado_like.sbatch.importing import Imported, read_script

__all__ = ["Imported", "read_script"]
