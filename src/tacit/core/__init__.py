"""What every part shares: guarantees, errors, validation, rounding to the safe side, and how results are shown."""
