"""What people would use instead, measured on the same machine in the same run.

Each peer is driven by a program of its own below `drivers/`, in the peers' own environment (`requirements.txt`), so
that none of them shares a process or a version of anything with stado. `contestant.py` is our end of the pipe.
"""
