"""The run specification: what a person may ask for, with which limits, and what is stored of it.

    units.py       durations, sizes and array shapes as people type them         (no pydantic)
    limits.py      every default and every bound, once                           (no pydantic)
    reading.py     YAML or JSON text -> a plain dictionary, or one clear refusal (no pydantic)
    fields.py      the kinds of leaves: whole numbers, cores, texts, choices, flags
    metadata.py  resources.py  resilience.py  task.py  job.py     one model per part of the document
    rules.py       what no single field can know: two fields that contradict each other
    complaints.py  what is wrong, as one sentence per path
    validate.py    the door: `validate`, `read_document`, `json_schema`

Nothing is imported here: a worker reads a stored document through `stado_like.job.terms`, which never loads the models.
"""
