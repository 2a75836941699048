"""Running trials: one trial (`trial`), and what stands around it."""
