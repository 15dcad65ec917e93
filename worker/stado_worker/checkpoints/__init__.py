"""A task's checkpoint directory: uploaded while it runs and when it ended, there again before its next attempt starts.

    place      where the directory lies: of one attempt alone
    restore    the newest complete checkpoint of the attempts before -> the directory
    scan       the directory at one moment, nothing followed
    sending    what changed -> the store, a manifest last, older ones removed
    slices     a part of a file that tells what was really sent
    saving     when: a thread beside control and I/O
    keeping    all of it, as the supervisor sees it

What is in the store, and what may be removed there, is said in `stado_like.bucket.checkpoints`.
"""
