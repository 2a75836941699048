"""What Seatrial costs, beside a plain program, pydantic-evals and inspect-ai: `make bench`."""
