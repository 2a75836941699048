"""What the records of a run amount to: cases, figures, comparisons."""
