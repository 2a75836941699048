"""What surrounds an agent in one trial."""
