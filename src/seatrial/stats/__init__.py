"""Numbers in, numbers out: no files, no clock, seeded where they draw."""
