"""Every promise that can be read from a bucket at rest, and the transitions that mend what breaks one.

It decides nothing new: what it repairs, a tick may repair at any time, through the same functions of `bucket/`.
"""
