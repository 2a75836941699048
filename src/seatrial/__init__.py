"""Sea trials for AI agents."""
