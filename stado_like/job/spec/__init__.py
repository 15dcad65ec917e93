"""The run specification: what a person may ask for, with which limits, and what is stored of it.

    units.py           durations, sizes and array shapes as people type them         (no pydantic)
    limits.py          every default and every bound, once                           (no pydantic)
    reading.py         YAML or JSON text -> a plain dictionary, or one clear refusal (no pydantic)
    fields.py          the kinds of leaves, and the marks that say whether a field acts
    job.py             the document and `spec`; its parts: metadata.py  groups.py  array.py  kept.py
    task.py            `task_template`; its parts: resources.py  gpus.py  topology.py  node_selection.py  resilience.py
                       mounts.py  secrets.py  security.py  health.py  egress.py  checkpoint.py  images.py  marked.py
    paths.py           paths, names and variables as a template writes them
    as_written.py      a document in any state of disrepair, one value at a time     (no pydantic)
    rules.py           what two fields of a job say about each other                 (no pydantic)
    rules_task.py  rules_resources.py   the same of one template                     (no pydantic)
    complaints.py      what is wrong, as one sentence per path
    standing.py        what each field is, and which of them nothing acts upon yet
    validate.py        the door: `validate`, `read_document`, `json_schema`          (no pydantic until it is asked)

Nothing is imported here: a worker reads a stored document through `stado_like.job.terms`, which never loads the models.
"""
