"""How a person asks for a job: every word of an option or a keyword, read once, for the command line and for programs.

    naming.py     a name for a job that was given none, or whose name is taken
    variables.py  K=V, K alone, files of variables; labels
    choices.py    GPUs, signals, awaited jobs: small words with a grammar of their own
    moments.py    a deadline, as a moment or as a duration from now
    entries.py    a file of lines: one task each
    script.py     a script: its text becomes the command, so what runs is what was submitted
    launcher.py   the line that starts torchrun on one machine or on several
    family.py     the jobs a new one belongs to: its parent, and those it waits for

`stado_like.jobspec` puts them together into a document. Durations, sizes and arrays are `stado_like.job.spec.units`.
"""
