"""What stado costs on this machine, measured beside floors of the same run. Started by `scripts/bench`."""
