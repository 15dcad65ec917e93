"""Credentials and literal files of a task, on its machine.

    table     the `[secrets]` table of the settings file, looked at again when the file changes
    sources   one source -> its content, or Missing, or CouldNotTell; `aws` asks Parameter Store and Secrets Manager
    fetch     references of a run -> variables, files, masks; waits until every value is there
    placing   files at the paths that a run asks for, shared and removed again
    private   where an attempt keeps its values on this machine, and the masks for whoever carries on its log
    masking   values -> `*` in everything that leaves the machine

Values stay on the machine: they are in no record of the bucket, no exception and no log of ours.
"""
