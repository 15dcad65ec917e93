"""Folders shipped with jobs: what goes in (`contents`, `ignore`), the archive (`archive`), its way to the store
(`upload`), and out of it again on a machine that does not trust it (`unpack`).
"""
